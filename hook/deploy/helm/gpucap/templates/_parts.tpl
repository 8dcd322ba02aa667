{{/* The labels of an object; its name is the argument `name`. */}}
{{- define "gpucap.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* The image, as a container names it. */}}
{{- define "gpucap.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{/* The same of the DRA driver, which has an image of its own. */}}
{{- define "gpucap.dra.image" -}}
{{- $repository := .Values.dra.image.repository | default (printf "%s-dra" .Values.image.repository) -}}
{{- $tag := .Values.dra.image.tag | default .Values.image.tag | default .Chart.AppVersion -}}
image: {{ printf "%s:%s" $repository $tag | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{/* The nodes of a DaemonSet, and what its pods need to start there. */}}
{{- define "gpucap.nodes" -}}
nodeSelector:
  {{- toYaml .Values.nodeSelector | nindent 2 }}
# On each node with the labels, whatever taints it has: clouds have taints of their own for nodes with a GPU.
tolerations:
  - operator: Exists
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
# For nsenter: the node's first process is the way to its mount namespace.
hostPID: true
{{- end }}

{{/* The rights of a container that runs the node's programs by nsenter. */}}
{{- define "gpucap.enters" -}}
# Less than `privileged`: no devices, no other capability. A process that may enter the node's mount namespace
# is nevertheless root on it, so only administrators may create pods in this namespace.
privileged: false
runAsUser: 0
# The API requires it with SYS_ADMIN.
allowPrivilegeEscalation: true
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  # To open /proc/1/ns/mnt, to enter it, and to take its root.
  add: [SYS_PTRACE, SYS_ADMIN, SYS_CHROOT]
# Allows what the capabilities do; the default profiles of the two below do not.
seccompProfile:
  type: RuntimeDefault
appArmorProfile:
  type: Unconfined
seLinuxOptions:
  type: spc_t
{{- end }}

{{/* The rights of a container that needs none. */}}
{{- define "gpucap.bare" -}}
runAsNonRoot: true
runAsUser: 65534
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* The directory of the hook's records on the node. */}}
{{- define "gpucap.records" -}}
{{ .Values.settings.run_dir | default "/run/gpucap" }}
{{- end }}
