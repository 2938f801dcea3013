// Command logbench measures scute, one group of figures at a time:
//
//	go run ./cmd/logbench GROUP...
//
// Every figure is one line "bench NAME VALUE UNIT" on stdout. Progress goes to stderr. docs/performance.md explains the
// figures. Ratios compare scute with the libraries below it in the same run, so that they are valid on any machine.
package main
