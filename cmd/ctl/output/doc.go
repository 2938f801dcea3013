// Package output prints resources in kubectl's formats: json, yaml, name and jsonpath. A table is
// each command's own.
//
// What never may live here: what is printed.
package output
