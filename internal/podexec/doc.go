// Package podexec serves exec requests over SPDY for tests, without a kubelet. The command is a
// function.
//
// It reads no standard input, and knows no terminal. The programs of scute do not import it.
package podexec
