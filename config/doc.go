// Package config contains the CustomResourceDefinitions of scute, which are generated.
package config
