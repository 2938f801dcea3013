// Package providers implements the task kind Providers, which installs and upgrades Cluster API
// providers. Its undo removes what it installed.
//
// This package never contains an order between providers and clusters.
package providers
