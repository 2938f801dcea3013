// Package docs checks the documentation: dependencies, links, vocabulary, and names in the guides.
// Every direct dependency has a reason, every relative link leads to a file and every anchor to a
// heading, comments, messages and pages use the words of testdata/words.txt, and the names in the
// guides are declared. The documentation's YAML and its lines of scutectl are checked in cmd/ctl.
//
// What never may live here: prose.
package docs
