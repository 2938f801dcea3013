// Package providers implements the task kind Providers, which installs and upgrades Cluster API providers, and removes those that it installed.
//
// This package never contains an order between providers and clusters.
package providers
