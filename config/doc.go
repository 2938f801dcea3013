// Package config holds what is installed beside scute's programs: the definitions of its resources, which are generated.
package config
