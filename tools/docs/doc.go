// Package docs checks what the documentation says against the tree: every direct dependency has a reason, and every
// relative link leads to a file. Its YAML and its lines of scutectl are checked in cmd/ctl.
//
// What never may live here: prose.
package docs
