// Package document decodes YAML and checks JSON from untrusted sources: manifests, kubeconfigs,
// configurations, and files of repositories. It reads them as kubectl does, with aliases and merge
// keys. It refuses a document that would use too much memory before it decodes it.
//
// This package never interprets the content of a document.
package document
