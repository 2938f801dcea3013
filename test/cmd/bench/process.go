package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is the resource usage of a process, as the kernel reports it.
type usage struct {
	resident, peak float64 // MiB
	cpu            time.Duration
}

// tick is the kernel's unit of CPU time: 100 per second on every Linux that Go supports.
const tick = 10 * time.Millisecond

// usageOf reads the usage of a process from /proc.
func usageOf(pid int) (usage, error) {
	var u usage
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, fmt.Errorf("reading the memory of process %d, which takes Linux: %w", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch name {
		case "VmRSS":
			u.resident = kib / 1024
		case "VmHWM":
			u.peak = kib / 1024
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	// The fields after the command's name, which may contain any character, begin with the third. Fields 14 and 15 are
	// user and system time.
	fields := strings.Fields(string(stat)[strings.LastIndexByte(string(stat), ')')+1:])
	if len(fields) < 13 || u.resident == 0 {
		return u, fmt.Errorf("reading the usage of process %d: unexpected %q", pid, stat)
	}
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return u, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
		}
		u.cpu += time.Duration(n) * tick
	}
	return u, nil
}
