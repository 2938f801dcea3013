// Package atomicfile replaces files whole: a crash leaves the file that was there or the new one, and never a part.
//
// What never may live here: what is written.
package atomicfile
