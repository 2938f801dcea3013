// Package providers is the kind of task Providers: it installs and upgrades Cluster API providers, and removes what it
// installed.
//
// What never may live here: an order between providers and clusters.
package providers
