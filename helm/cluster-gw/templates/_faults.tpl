{{- define "cluster-gw.faults" -}}
{{- $v := .Values }}
{{- if and (not $v.existingConfigMap) (not $v.config.providers) }}
config.providers: none is declared, so nothing could be served; see README.md of the chart for the fewest values
{{- end }}
{{- if and $v.existingConfigMap $v.config }}
config: has no effect beside existingConfigMap; leave one of them out
{{- end }}
{{- include "cluster-gw.faultsOfRedis" . }}
{{- include "cluster-gw.faultsOfSecrets" . }}
{{- with $v.terminationGracePeriodSeconds | int }}
{{- $needed := include "cluster-gw.neededSeconds" $ | int }}
{{- if lt . $needed }}
terminationGracePeriodSeconds: {{ . }} would cut answers; lifecycle.preStopSeconds {{ int $v.lifecycle.preStopSeconds }} and lifecycle.drainSeconds {{ int $v.lifecycle.drainSeconds }} need {{ $needed }} or more (0 does that)
{{- end }}
{{- end }}
{{- if eq (int $v.containerPorts.http) (int $v.containerPorts.operations) }}
containerPorts.operations: must differ from containerPorts.http
{{- end }}
{{- $owned := dict "GW_CONFIG" "config" "GW_SERVER__HOST" "bindAddress" "GW_SERVER__PORT" "containerPorts.http" "GW_SERVER__ADMIN_HOST" "bindAddress" "GW_SERVER__ADMIN_PORT" "containerPorts.operations" "GW_SERVER__DRAIN_S" "lifecycle.drainSeconds" "GW_REDIS__URL" "redis" "GW_REDIS__DATA_DIR" "redis.persistence" "GW_REDIS__CACHE_URL" "redis.cacheUrl" "GW_ADMIN_TOKEN" "admin" "GW_MASTER_KEY" "encryption" "GW_MASTER_KEY_PREVIOUS" "encryption.previousKey" "REDIS_PASSWORD" "redis.passwordKey" "SENTINEL_PASSWORD" "redis.sentinel.passwordKey" }}
{{- range $v.extraEnv }}
{{- with get $owned .name }}
extraEnv: set {{ . }} in place of a variable that the chart sets itself
{{- end }}
{{- end }}
{{- if and (has (toString $v.rollingUpdate.maxSurge) (list "0" "0%")) (has (toString $v.rollingUpdate.maxUnavailable) (list "0" "0%")) }}
rollingUpdate.maxSurge: with maxUnavailable 0, too, no pod could ever be replaced
{{- end }}
{{- with $v.autoscaling }}
{{- if .enabled }}
{{- if lt (int .maxReplicas) (int .minReplicas) }}
autoscaling.maxReplicas: {{ int .maxReplicas }} is below autoscaling.minReplicas {{ int .minReplicas }}
{{- end }}
{{- if not (or .metrics (int .targetCPUUtilizationPercentage) (int .targetMemoryUtilizationPercentage)) }}
autoscaling.metrics: nothing is measured; set a target
{{- end }}
{{- $requests := $v.resources.requests | default dict }}
{{- if and (int .targetCPUUtilizationPercentage) (not (get $requests "cpu")) }}
resources.requests.cpu: autoscaling.targetCPUUtilizationPercentage is a part of it
{{- end }}
{{- if and (int .targetMemoryUtilizationPercentage) (not (get $requests "memory")) }}
resources.requests.memory: autoscaling.targetMemoryUtilizationPercentage is a part of it
{{- end }}
{{- end }}
{{- end }}
{{- with $v.encryption }}
{{- if and .previousKey (or (not .existingSecret) (eq .previousKey .key)) }}
encryption.previousKey: has to be another entry of encryption.existingSecret than encryption.key
{{- end }}
{{- end }}
{{- if and $v.ingress.enabled (not $v.ingress.hosts) }}
ingress.hosts: name at least one host
{{- end }}
{{- if and $v.httpRoute.enabled (not $v.httpRoute.parentRefs) }}
httpRoute.parentRefs: name at least one gateway
{{- end }}
{{- range $v.prometheusRule.disabled }}
{{- if not (regexMatch (printf "(?m)^ +- alert: %s$" .) ($.Files.Get "files/alerts.yaml")) }}
prometheusRule.disabled: there is no alert {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "cluster-gw.faultsOfRedis" -}}
{{- $redis := .Values.redis }}
{{- $bundled := $redis.bundled.enabled }}
{{- if and $bundled (ne $redis.mode "standalone") }}
redis.bundled.enabled: the chart's own Redis is one server; redis.mode has to be standalone
{{- end }}
{{- if and $bundled (or $redis.host $redis.urlKey) }}
redis.bundled.enabled: redis.host or redis.urlKey names another Redis; leave one of them out
{{- end }}
{{- if and $bundled $redis.tls.enabled }}
redis.tls.enabled: the chart's own Redis does not speak TLS
{{- end }}
{{- if and $bundled (or $redis.username (int $redis.database)) }}
redis.username, redis.database: the chart's own Redis has the default user and database 0
{{- end }}
{{- if and $bundled $redis.existingSecret (not $redis.passwordKey) }}
redis.passwordKey: the chart's own Redis has a password
{{- end }}
{{- if and $redis.urlKey (not $redis.existingSecret) }}
redis.existingSecret: redis.urlKey is an entry of it
{{- end }}
{{- if and $redis.urlKey $redis.host }}
redis.host: redis.urlKey holds the whole address; leave one of them out
{{- end }}
{{- if not $redis.urlKey }}
{{- if and (eq $redis.mode "standalone") (not $redis.host) (not $bundled) }}
redis.host: say where Redis is, or let the chart bring a small one (redis.bundled.enabled: true), or take redis.mode: embedded for a single pod
{{- end }}
{{- if and (eq $redis.mode "sentinel") (not (and $redis.sentinel.hosts $redis.sentinel.masterName)) }}
redis.sentinel: name all hosts, and masterName
{{- end }}
{{- if and (eq $redis.mode "cluster") (not $redis.cluster.hosts) }}
redis.cluster.hosts: name two nodes or more
{{- end }}
{{- end }}
{{- if and (eq $redis.mode "cluster") (int $redis.database) }}
redis.database: a cluster has no numbered databases
{{- end }}
{{- if and $redis.sentinel.passwordKey (not $redis.existingSecret) }}
redis.existingSecret: redis.sentinel.passwordKey is an entry of it
{{- end }}
{{- if ne (empty $redis.tls.certKey) (empty $redis.tls.keyKey) }}
redis.tls.keyKey: redis.tls.certKey and it belong together
{{- end }}
{{- if and $redis.tls.certKey (not $redis.tls.existingSecret) }}
redis.tls.existingSecret: redis.tls.certKey is an entry of it
{{- end }}
{{- if contains "@" $redis.cacheUrl }}
redis.cacheUrl: seems to hold a password; put the address into a Secret (redis.cacheUrlSecret)
{{- end }}
{{- end }}

{{- define "cluster-gw.faultsOfSecrets" -}}
{{- $v := .Values }}
{{- $sources := list }}
{{- with $v.secrets }}
{{- if .existingSecret }}{{ $sources = append $sources "existingSecret" }}{{ end }}
{{- if .values }}{{ $sources = append $sources "values" }}{{ end }}
{{- if .externalSecret.enabled }}{{ $sources = append $sources "externalSecret" }}{{ end }}
{{- if gt (len $sources) 1 }}
secrets: one source is enough, not {{ join " and " $sources }}
{{- end }}
{{- if and .externalSecret.enabled (not (or .externalSecret.data .externalSecret.dataFrom)) }}
secrets.externalSecret.data: say what is fetched
{{- end }}
{{- if and .externalSecret.enabled (not .externalSecret.secretStoreRef.name) }}
secrets.externalSecret.secretStoreRef: name the store
{{- end }}
{{- end }}
{{- $texts := dict }}
{{- range $i, $key := $v.config.keys | default list }}
{{- $_ := set $texts (printf "config.keys[%d].secret" $i) $key.secret }}
{{- if $key.proxy }}{{ $_ := set $texts (printf "config.keys[%d].proxy" $i) $key.proxy }}{{ end }}
{{- end }}
{{- with ($v.config.upstream | default dict).proxy }}{{ $_ := set $texts "config.upstream.proxy" . }}{{ end }}
{{- $folder := printf "file:%s/secrets/" (include "cluster-gw.folder" .) }}
{{- $known := list "REDIS_PASSWORD" "SENTINEL_PASSWORD" "GW_ADMIN_TOKEN" }}
{{- range $v.extraEnv }}{{ $known = append $known .name }}{{ end }}
{{- $isOpen := or $v.extraEnvFrom (and $v.secrets.env $sources) }}
{{- range $place, $text := $texts }}
{{- $isReference := or (hasPrefix "env:" $text) (hasPrefix "file:" $text) (contains "${" $text) }}
{{- if and (hasSuffix ".secret" $place) (not $isReference) }}
{{ $place }}: a credential does not belong into values; write {{ $folder }}NAME, with the entry NAME in secrets.existingSecret
{{- else if and (not $isReference) (contains "@" $text) }}
{{ $place }}: seems to hold a password; write {{ $folder }}NAME, with the entry NAME in secrets.existingSecret
{{- end }}
{{- if and (hasPrefix $folder $text) (not $sources) }}
{{ $place }}: nothing is mounted there; set secrets.existingSecret
{{- end }}
{{- $entry := trimPrefix $folder $text }}
{{- if and (hasPrefix $folder $text) $v.secrets.values (not (hasKey $v.secrets.values $entry)) }}
{{ $place }}: secrets.values has no entry {{ $entry }}
{{- end }}
{{- if and (hasPrefix "env:" $text) (not $isOpen) (not (has (trimPrefix "env:" $text) $known)) }}
{{ $place }}: no variable {{ trimPrefix "env:" $text }} is set; write {{ $folder }}{{ trimPrefix "env:" $text }} and set secrets.existingSecret, or set secrets.env, too
{{- end }}
{{- end }}
{{- if not $isOpen }}
{{- range regexFindAll "[$]+[{][A-Za-z_][A-Za-z0-9_]*[}]" (toYaml $v.config) -1 | uniq }}
{{- $name := . | trimAll "${}" }}
{{- if and (not (hasPrefix "$$" .)) (not (has $name $known)) }}
config: no variable {{ $name }} is set; set secrets.env with a Secret that has it, extraEnv or extraEnvFrom
{{- end }}
{{- end }}
{{- end }}
{{- end }}
