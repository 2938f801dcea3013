// Package process runs child processes that never outlive this one, and keeps the folder they work in from being left
// behind, however this process ends: by return, panic, signal or kill -9.
//
// It knows nothing about what the children are.
package process
