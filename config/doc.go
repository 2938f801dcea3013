// Package config contains the generated CustomResourceDefinitions of scute's resources.
package config
