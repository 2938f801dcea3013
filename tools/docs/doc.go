// Package docs checks what is written against the tree: every direct dependency has a reason, every relative link leads to a
// file, comments, messages and pages use the words of testdata/words.txt, and what the guides name is declared. The
// documentation's YAML and its lines of scutectl are checked in cmd/ctl.
//
// What never may live here: prose.
package docs
