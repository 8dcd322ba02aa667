{{/*
What each container under limits holds and uses: http://POD:9744/metrics. A client that reaches the port sees the names
of all pods on the node: see the NetworkPolicy.
*/}}
{{- define "gpucap.metrics.container" -}}
- name: metrics
  {{- include "gpucap.image" . | nindent 2 }}
  command:
    {{- if .Values.metrics.sample }}
    # A process of the node: NVIDIA's library and the containers' usage pages are there.
    - nsenter
    - -t
    - "1"
    - -m
    {{- end }}
    - /opt/gpucap/current/bin/gpucap
    - metrics
    - --listen=0.0.0.0:9744
    {{- if .Values.metrics.sample }}
    - --sample
    {{- with .Values.node.run }}
    - {{ printf "--through=%s" . | quote }}
    {{- end }}
    {{- end }}
  ports:
    - name: metrics
      containerPort: 9744
  readinessProbe:
    tcpSocket:
      port: metrics
  securityContext:
    # The ledgers of containers belong to their users, in their file systems: /proc/PID/root leads there. They are
    # only read.
    runAsUser: 0
    # The API requires it with SYS_ADMIN.
    allowPrivilegeEscalation: {{ .Values.metrics.sample }}
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
      {{- if .Values.metrics.sample }}
      # The last two to enter the node's mount namespace, and to take its root.
      add: [SYS_PTRACE, DAC_READ_SEARCH, SYS_ADMIN, SYS_CHROOT]
      {{- else }}
      add: [SYS_PTRACE, DAC_READ_SEARCH]
      {{- end }}
    seccompProfile:
      type: RuntimeDefault
    appArmorProfile:
      type: Unconfined
    seLinuxOptions:
      type: spc_t
  resources:
    requests: {cpu: 5m, memory: 8Mi}
    limits: {memory: {{ .Values.metrics.sample | ternary "192Mi" "64Mi" }}}
  volumeMounts:
    - name: prefix
      mountPath: /opt/gpucap
      readOnly: true
    - name: etc
      mountPath: /etc/gpucap
      readOnly: true
    - name: records
      mountPath: {{ include "gpucap.records" . }}
      readOnly: true
{{- end }}

{{- define "gpucap.metrics.volumes" -}}
- name: records
  hostPath:
    path: {{ include "gpucap.records" . }}
    type: DirectoryOrCreate
{{- end }}
