// Package podexec serves exec requests over SPDY for tests, without a kubelet. The command is a
// function.
//
// It supports neither standard input nor a terminal. The programs of scute do not import it.
package podexec
