{{- /* The environment of the gateway, as a list in YAML: what is here beats the configuration. */}}
{{- define "cluster-gw.environment" -}}
- {name: GW_CONFIG, value: {{ include "cluster-gw.folder" . }}/config/cluster-gw.yaml}
- {name: GW_SERVER__HOST, value: {{ .Values.bindAddress | quote }}}
- {name: GW_SERVER__PORT, value: "{{ int .Values.containerPorts.http }}"}
- {name: GW_SERVER__ADMIN_HOST, value: {{ .Values.bindAddress | quote }}}
- {name: GW_SERVER__ADMIN_PORT, value: "{{ int .Values.containerPorts.operations }}"}
- {name: GW_SERVER__DRAIN_S, value: "{{ int .Values.lifecycle.drainSeconds }}"}
{{- with .Values.redis }}
{{- if and .existingSecret .urlKey }}
- name: GW_REDIS__URL
  valueFrom: {secretKeyRef: {name: {{ .existingSecret }}, key: {{ .urlKey }}}}
{{- else }}
{{- if and (ne .mode "embedded") (include "cluster-gw.redisSecret" $) (include "cluster-gw.redisPasswordKey" $) }}
- name: REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ include "cluster-gw.redisSecret" $ }}, key: {{ include "cluster-gw.redisPasswordKey" $ }}}}
{{- end }}
{{- if and (eq .mode "sentinel") .sentinel.passwordKey }}
- name: SENTINEL_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ .existingSecret }}, key: {{ .sentinel.passwordKey }}}}
{{- end }}
- {name: GW_REDIS__URL, value: {{ include "cluster-gw.redisUrl" $ | quote }}}
{{- end }}
{{- if .cacheUrlSecret }}
- name: GW_REDIS__CACHE_URL
  valueFrom: {secretKeyRef: {name: {{ .cacheUrlSecret }}, key: {{ .cacheUrlKey }}}}
{{- else if .cacheUrl }}
- {name: GW_REDIS__CACHE_URL, value: {{ .cacheUrl | quote }}}
{{- end }}
{{- if eq .mode "embedded" }}
- {name: GW_REDIS__DATA_DIR, value: {{ include "cluster-gw.data" $ }}}
{{- end }}
{{- end }}
{{- if .Values.admin.enabled }}
- name: GW_ADMIN_TOKEN
  valueFrom: {secretKeyRef: {name: {{ include "cluster-gw.adminSecret" . }}, key: {{ .Values.admin.tokenKey }}}}
{{- end }}
{{- if .Values.encryption.existingSecret }}
- {name: GW_MASTER_KEY, value: "file:{{ include "cluster-gw.folder" . }}/encryption/{{ .Values.encryption.key }}"}
{{- with .Values.encryption.previousKey }}
- {name: GW_MASTER_KEY_PREVIOUS, value: "file:{{ include "cluster-gw.folder" $ }}/encryption/{{ . }}"}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "cluster-gw.environmentFrom" -}}
{{- if and .Values.secrets.env (include "cluster-gw.secrets" .) }}
- secretRef: {name: {{ include "cluster-gw.secrets" . }}}
{{- end }}
{{- with .Values.extraEnvFrom }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What is mounted into the gateway: (name, path) of each, beside what values add. */}}
{{- define "cluster-gw.mounts" -}}
- {name: config, mountPath: {{ include "cluster-gw.folder" . }}/config, readOnly: true}
{{- if include "cluster-gw.secrets" . }}
- {name: secrets, mountPath: {{ include "cluster-gw.folder" . }}/secrets, readOnly: true}
{{- end }}
{{- if .Values.encryption.existingSecret }}
- {name: encryption, mountPath: {{ include "cluster-gw.folder" . }}/encryption, readOnly: true}
{{- end }}
{{- if and .Values.redis.tls.enabled .Values.redis.tls.existingSecret }}
- {name: redis-tls, mountPath: {{ include "cluster-gw.folder" . }}/redis-tls, readOnly: true}
{{- end }}
- {name: tmp, mountPath: /tmp}
- {name: data, mountPath: {{ include "cluster-gw.data" . }}}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* 288 is 0440: YAML 1.2 knows no octal numbers that begin with 0. */}}
{{- define "cluster-gw.volumes" -}}
- name: config
  configMap: {name: {{ include "cluster-gw.configMap" . }}, items: [{key: cluster-gw.yaml, path: cluster-gw.yaml}]}
{{- if include "cluster-gw.secrets" . }}
- name: secrets
  secret: {secretName: {{ include "cluster-gw.secrets" . }}, defaultMode: 288}
{{- end }}
{{- with .Values.encryption }}
{{- if .existingSecret }}
- name: encryption
  secret: {secretName: {{ .existingSecret }}, defaultMode: 288, items: [{key: {{ .key }}, path: {{ .key }}}{{ with .previousKey }}, {key: {{ . }}, path: {{ . }}}{{ end }}]}
{{- end }}
{{- end }}
{{- if and .Values.redis.tls.enabled .Values.redis.tls.existingSecret }}
- name: redis-tls
  secret: {secretName: {{ .Values.redis.tls.existingSecret }}, defaultMode: 288}
{{- end }}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
- name: data
{{- if and (eq .Values.redis.mode "embedded") .Values.redis.persistence.enabled }}
  persistentVolumeClaim: {claimName: {{ .Values.redis.persistence.existingClaim | default (printf "%s-data" (include "cluster-gw.fullname" .)) }}}
{{- else }}
  emptyDir: {sizeLimit: {{ ternary "2Gi" "16Mi" (eq .Values.redis.mode "embedded") }}}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
