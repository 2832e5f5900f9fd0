{{- define "cluster-gw.redis" -}}
{{ include "cluster-gw.fullname" . }}-redis
{{- end }}

{{- define "cluster-gw.redisSecret" -}}
{{- if .Values.redis.existingSecret }}{{ .Values.redis.existingSecret }}{{ else if .Values.redis.bundled.enabled }}{{ include "cluster-gw.redis" . }}{{ end }}
{{- end }}

{{- define "cluster-gw.redisPasswordKey" -}}
{{- ternary .Values.redis.passwordKey "redis-password" (not (empty .Values.redis.existingSecret)) }}
{{- end }}

{{- /* The address of Redis, with the names of variables in place of passwords. */}}
{{- define "cluster-gw.redisUrl" -}}
{{- $redis := .Values.redis }}
{{- $scheme := ternary "rediss" "redis" $redis.tls.enabled }}
{{- $login := "" }}
{{- if and (include "cluster-gw.redisSecret" .) (include "cluster-gw.redisPasswordKey" .) }}
{{- $login = printf "%s:$(REDIS_PASSWORD)@" $redis.username }}
{{- else if $redis.username }}
{{- $login = printf "%s@" $redis.username }}
{{- end }}
{{- $options := list }}
{{- if $redis.tls.enabled }}
{{- $folder := printf "%s/redis-tls" (include "cluster-gw.folder" .) }}
{{- if and $redis.tls.existingSecret $redis.tls.caKey }}{{ $options = append $options (printf "ssl_ca_certs=%s/%s" $folder $redis.tls.caKey) }}{{ end }}
{{- if $redis.tls.certKey }}{{ $options = concat $options (list (printf "ssl_certfile=%s/%s" $folder $redis.tls.certKey) (printf "ssl_keyfile=%s/%s" $folder $redis.tls.keyKey)) }}{{ end }}
{{- if not $redis.tls.checkHostname }}{{ $options = append $options "ssl_check_hostname=false" }}{{ end }}
{{- end }}
{{- $path := "" }}
{{- $hosts := "" }}
{{- if eq $redis.mode "embedded" }}
{{- else if eq $redis.mode "sentinel" }}
{{- $scheme = printf "%s+sentinel" $scheme }}
{{- $hosts = join "," $redis.sentinel.hosts }}
{{- $path = printf "/%s/%d" $redis.sentinel.masterName (int $redis.database) }}
{{- if $redis.sentinel.username }}{{ $options = append $options (printf "sentinel_user=%s" $redis.sentinel.username) }}{{ end }}
{{- if $redis.sentinel.passwordKey }}{{ $options = append $options "sentinel_password=$(SENTINEL_PASSWORD)" }}{{ end }}
{{- else if eq $redis.mode "cluster" }}
{{- $scheme = printf "%s+cluster" $scheme }}
{{- $hosts = join "," $redis.cluster.hosts }}
{{- else }}
{{- $host := ternary (include "cluster-gw.redis" .) $redis.host $redis.bundled.enabled }}
{{- $hosts = printf "%s:%d" (ternary (printf "[%s]" $host) $host (contains ":" $host)) (ternary 6379 (int $redis.port) $redis.bundled.enabled) }}
{{- $path = printf "/%d" (int $redis.database) }}
{{- end }}
{{- if eq $redis.mode "embedded" }}embedded:{{ else }}{{ $scheme }}://{{ $login }}{{ $hosts }}{{ $path }}{{ with $options }}?{{ join "&" . }}{{ end }}{{ end }}
{{- end }}

{{- /* Ports of Redis that pods have to reach, as a list in YAML. */}}
{{- define "cluster-gw.redisPorts" -}}
{{- $redis := .Values.redis }}
{{- $ports := list }}
{{- if eq $redis.mode "standalone" }}
{{- $ports = list (ternary 6379 (int $redis.port) $redis.bundled.enabled) }}
{{- else if ne $redis.mode "embedded" }}
{{- $ports = list (int $redis.port) }}
{{- $isSentinel := eq $redis.mode "sentinel" }}
{{- range ternary $redis.sentinel.hosts $redis.cluster.hosts $isSentinel }}
{{- $port := regexFind ":[0-9]+$" . | trimPrefix ":" }}
{{- $ports = append $ports (ternary (ternary 26379 6379 $isSentinel) (int $port) (empty $port)) }}
{{- end }}
{{- end }}
{{- if $redis.cacheUrlSecret }}{{ $ports = append $ports (int $redis.port) }}{{ end }}
{{- with regexFind "^rediss?([+][a-z]+)?://[^/?]*" $redis.cacheUrl }}
{{- range splitList "," (regexReplaceAll "^[^/]*//" . "") }}
{{- $port := regexFind ":[0-9]+$" . | trimPrefix ":" }}
{{- $ports = append $ports (ternary (int $redis.port) (int $port) (empty $port)) }}
{{- end }}
{{- end }}
{{- uniq $ports | sortAlpha | toYaml }}
{{- end }}

{{- /* Ports of providers and of the collector that the configuration names, and 443, as a list in YAML. */}}
{{- define "cluster-gw.providerPorts" -}}
{{- $urls := list }}
{{- range $name, $provider := .Values.config.providers | default dict }}{{ $urls = append $urls (get ($provider | default dict) "base_url") }}{{ end }}
{{- range .Values.config.keys | default list }}{{ $urls = append $urls (get . "base_url") }}{{ end }}
{{- $urls = append $urls (get (.Values.config.telemetry | default dict) "otlp_endpoint") }}
{{- $ports := list "443" }}
{{- range compact $urls }}
{{- $place := regexFind "^https?://[^/?#]*" . }}
{{- $port := regexFind ":[0-9]+$" $place | trimPrefix ":" }}
{{- if $port }}{{ $ports = append $ports $port }}{{ else if hasPrefix "http://" $place }}{{ $ports = append $ports "80" }}{{ end }}
{{- end }}
{{- range .Values.networkPolicy.egress.ports }}{{ $ports = append $ports (printf "%d" (int .)) }}{{ end }}
{{- uniq $ports | sortAlpha | toYaml }}
{{- end }}

{{- /* What docs/redis.md asks of a server. */}}
{{- define "cluster-gw.redisConf" -}}
bind * -::*
port 6379
dir /data
save ""
appendonly yes
appendfsync everysec
maxmemory {{ .Values.redis.bundled.maxMemory }}
maxmemory-policy noeviction
hash-max-listpack-value 128
repl-diskless-sync-delay 0
{{- with .Values.redis.bundled.extraConfig }}
{{ . }}
{{- end }}
{{- end }}
