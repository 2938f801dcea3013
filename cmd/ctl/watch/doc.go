// Package watch shows what is followed, again and again, until it is over.
//
// What never may live here: what is followed, and what it looks like.
package watch
