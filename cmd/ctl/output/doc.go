// Package output prints resources in the formats that kubectl has: json, yaml, name and jsonpath. A table is each
// command's own.
//
// What never may live here: what is printed.
package output
