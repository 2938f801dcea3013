//go:build unix && !linux

package process

import "syscall"

// attributes does not set Linux's parent-death signal. If the parent is killed with SIGKILL, its children continue to
// run.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
