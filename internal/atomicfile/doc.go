// Package atomicfile replaces files atomically. A crash leaves the old file or the new one.
//
// What never may live here: what is written.
package atomicfile
