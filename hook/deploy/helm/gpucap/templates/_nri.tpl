{{/*
The plugin for NRI: the node's own command, whose hook enforces. Pods of every runtime class are limited then, and
`kubectl exec` shows the limit. Without the plugin, pods of the class `gpucap` are limited and the others are not.
*/}}
{{- define "gpucap.nri.container" -}}
- name: nri
  {{- include "gpucap.image" . | nindent 2 }}
  command:
    - /opt/gpucap/current/bin/gpucap
    - nri
    - --program=/opt/gpucap/current/bin/gpucap
    - --ready-file=/run/gpucap/nri
  readinessProbe:
    exec:
      command: [test, -e, /run/gpucap/nri]
    periodSeconds: 5
  securityContext:
    # The owner of containerd's socket. A process that may use that socket may change every container of the node.
    runAsUser: 0
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
    seccompProfile:
      type: RuntimeDefault
    seLinuxOptions:
      type: spc_t
  resources:
    requests: {cpu: 5m, memory: 8Mi}
    limits: {memory: 64Mi}
  volumeMounts:
    - name: nri
      mountPath: /var/run/nri
      readOnly: true
    - name: prefix
      mountPath: /opt/gpucap
      readOnly: true
    - name: etc
      mountPath: /etc/gpucap
      readOnly: true
    - name: state
      mountPath: {{ include "gpucap.nri.state" . }}
      readOnly: true
    {{- range $name, $path := include "gpucap.nri.checkpoints" . | fromYaml }}
    - name: {{ $name }}
      mountPath: {{ $path }}
      readOnly: true
    {{- end }}
    - name: ready
      mountPath: /run/gpucap
{{- end }}

{{- define "gpucap.nri.volumes" -}}
- name: nri
  hostPath:
    path: /var/run/nri
    type: DirectoryOrCreate
- name: state
  hostPath:
    path: {{ include "gpucap.nri.state" . }}
    type: DirectoryOrCreate
{{- range $name, $path := include "gpucap.nri.checkpoints" . | fromYaml }}
- name: {{ $name }}
  hostPath:
    path: {{ $path }}
    type: DirectoryOrCreate
{{- end }}
- name: ready
  emptyDir:
    medium: Memory
{{- end }}

{{/* The directory of node-local allocations. */}}
{{- define "gpucap.nri.state" -}}
{{ .Values.settings.state_dir | default "/var/lib/gpucap" }}
{{- end }}

{{/* The directories of the checkpoints that the settings have read, by the names of their volumes. */}}
{{- define "gpucap.nri.checkpoints" -}}
{{- $usual := "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint" -}}
{{- $kubelet := .Values.settings.kubelet_checkpoint -}}
{{- if eq (.Values.settings.time_slicing | default "off") "enforce" -}}
{{- $kubelet = $kubelet | default $usual -}}
{{- end -}}
{{- with $kubelet }}
kubelet: {{ dir . }}
{{- end }}
{{- with .Values.settings.dra_checkpoint }}
dra: {{ dir . }}
{{- end }}
{{- end }}
