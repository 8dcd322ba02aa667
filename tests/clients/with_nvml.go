// go-nvml: what it says of the first card. `ci/clients` builds it.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func check(what string, result nvml.Return) {
	if result != nvml.SUCCESS {
		fmt.Fprintf(os.Stderr, "%s: %s\n", what, nvml.ErrorString(result))
		os.Exit(1)
	}
}

func main() {
	check("init", nvml.Init())
	device, result := nvml.DeviceGetHandleByIndex(0)
	check("device", result)
	name, result := device.GetName()
	check("name", result)
	memory, result := device.GetMemoryInfo()
	check("memory", result)
	second, result := device.GetMemoryInfo_v2()
	check("memory, version 2", result)
	if second.Total != memory.Total || second.Used != memory.Used {
		check("memory, version 2, differs", nvml.ERROR_UNKNOWN)
	}
	processes, result := device.GetComputeRunningProcesses()
	check("processes", result)
	var pids []string
	for _, process := range processes {
		pids = append(pids, fmt.Sprint(process.Pid))
	}
	fmt.Printf("name=%s\ntotal=%d\nused=%d\nfree=%d\n", name, memory.Total, memory.Used, memory.Free)
	fmt.Printf("pids=%s\n", strings.Join(pids, " "))
	check("shutdown", nvml.Shutdown())
}
