// Command logbench measures scute, one group of figures at a time:
//
//	go run ./cmd/logbench GROUP...
//
// Every figure is one line "bench NAME VALUE UNIT" on stdout; progress goes to stderr. docs/performance.md says what
// each figure means. Ratios compare with what scute is built on, in the same run, so that they hold on any machine.
package main
