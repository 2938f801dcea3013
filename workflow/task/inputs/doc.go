// Package inputs reads the inputs of a task: strictly, and once more when templates are filled in.
//
// What never may live here: what the inputs of one kind mean.
package inputs
