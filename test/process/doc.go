// Package process runs child processes that end with this process, and removes their folder. That holds for a return, a
// panic, a signal and kill -9.
//
// It is independent of the programs that it runs.
package process
