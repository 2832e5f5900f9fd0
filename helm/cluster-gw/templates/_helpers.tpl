{{- define "cluster-gw.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "cluster-gw.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "cluster-gw.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "cluster-gw.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* Labels by which Services and policies find pods: (dict "root" $ "component" "gateway"). */}}
{{- define "cluster-gw.selector" -}}
app.kubernetes.io/name: {{ include "cluster-gw.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "cluster-gw.labels" -}}
{{- $own := include "cluster-gw.selector" . | fromYaml }}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") }}
{{- $_ := set $own "app.kubernetes.io/version" .root.Chart.AppVersion }}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service }}
{{- $_ := set $own "app.kubernetes.io/part-of" "cluster-gw" }}
{{- mergeOverwrite (deepCopy .root.Values.commonLabels) $own | toYaml }}
{{- end }}

{{- /* Labels of a pod. No version is among them: a new chart alone is no reason to replace a pod. */}}
{{- define "cluster-gw.podLabels" -}}
{{- mergeOverwrite (deepCopy .root.Values.commonLabels) (deepCopy (.labels | default dict)) (include "cluster-gw.selector" . | fromYaml) | toYaml }}
{{- end }}

{{- /* Metadata of an object: (dict "root" $ "component" "gateway" "name" … "annotations" … "labels" … "namespace" …). */}}
{{- define "cluster-gw.metadata" -}}
name: {{ .name }}
namespace: {{ .namespace | default .root.Release.Namespace }}
labels:
  {{- mergeOverwrite (deepCopy (.labels | default dict)) (include "cluster-gw.labels" . | fromYaml) | toYaml | nindent 2 }}
{{- with mergeOverwrite (deepCopy .root.Values.commonAnnotations) (.annotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* An image: (dict "root" $ "image" .Values.image "version" "0.1.0"). */}}
{{- define "cluster-gw.image" -}}
{{- $registry := .root.Values.global.imageRegistry | default .image.registry }}
{{- $name := ternary .image.repository (printf "%s/%s" $registry .image.repository) (empty $registry) }}
{{- if .image.digest }}{{ $name }}@{{ .image.digest }}{{ else }}{{ $name }}:{{ .image.tag | default .version }}{{ end }}
{{- end }}

{{- /* What all pods have in common: (dict "root" $ "affinity" …). */}}
{{- define "cluster-gw.pod" -}}
serviceAccountName: {{ include "cluster-gw.serviceAccount" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with concat (.root.Values.global.imagePullSecrets | default list) (.root.Values.image.pullSecrets | default list) | uniq }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "cluster-gw.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "cluster-gw.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "cluster-gw.folder" -}}/etc/cluster-gw{{- end }}
{{- define "cluster-gw.data" -}}/var/lib/cluster-gw{{- end }}

{{- define "cluster-gw.configMap" -}}
{{- .Values.existingConfigMap | default (include "cluster-gw.fullname" .) }}
{{- end }}

{{- /* The Secret with the secrets of providers; empty if there is none. */}}
{{- define "cluster-gw.secrets" -}}
{{- with .Values.secrets }}
{{- if .existingSecret }}{{ .existingSecret }}{{ else if or .values .externalSecret.enabled }}{{ include "cluster-gw.fullname" $ }}-secrets{{ end }}
{{- end }}
{{- end }}

{{- define "cluster-gw.adminSecret" -}}
{{- .Values.admin.existingSecret | default (printf "%s-admin" (include "cluster-gw.fullname" .)) }}
{{- end }}

{{- define "cluster-gw.isAlone" -}}
{{- if or (eq .Values.redis.mode "embedded") (and (not .Values.autoscaling.enabled) (le (int .Values.replicaCount) 1)) (and .Values.autoscaling.enabled (le (int .Values.autoscaling.maxReplicas) 1)) }}true{{ end }}
{{- end }}

{{- /* Seconds a pod needs from the moment it is told to end: what the app takes at most beside the drain, and some. */}}
{{- define "cluster-gw.neededSeconds" -}}
{{- add (int .Values.lifecycle.preStopSeconds) (int .Values.lifecycle.drainSeconds) 20 (ternary 15 0 (eq .Values.redis.mode "embedded")) }}
{{- end }}

{{- define "cluster-gw.graceSeconds" -}}
{{- .Values.terminationGracePeriodSeconds | int | default (include "cluster-gw.neededSeconds" . | int) }}
{{- end }}

{{- /* What of the configuration running pods cannot take over, or all of it. */}}
{{- define "cluster-gw.checksum" -}}
{{- $watched := ternary .Values.config (pick .Values.config "server" "redis") (eq .Values.configChange "rollout") }}
{{- toYaml $watched | sha256sum }}
{{- end }}
