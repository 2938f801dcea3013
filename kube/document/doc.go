// Package document decodes YAML and JSON that somebody else wrote: manifests, kubeconfigs, configurations, and the files of repositories.
// It reads them as kubectl does, aliases and merge keys included, and refuses what would become too much in memory before it does.
//
// What never may live here: what a document means.
package document
