// Package docs checks what the documentation says against the tree: every direct dependency has a reason, and every
// relative link leads to a file.
//
// What never may live here: prose.
package docs
