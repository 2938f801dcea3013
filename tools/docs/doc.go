// Package docs checks what the documentation says against the tree: every direct dependency has a reason, every
// relative link leads to a file, and no example of a RepairPolicy has a field that there is not.
//
// What never may live here: prose.
package docs
