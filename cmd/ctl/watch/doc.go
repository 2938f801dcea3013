// Package watch shows an object repeatedly until its work has ended.
//
// What never may live here: what is followed, and what it looks like.
package watch
