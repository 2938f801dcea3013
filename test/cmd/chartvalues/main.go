// Command chartvalues writes the chart's value `providers` from test/catalog.
package main

import (
	"context"
	"fmt"
	"os"

	"scute.dev/test/catalog"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chartvalues:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one values.yaml")
	}
	providers, err := catalog.Providers(ctx)
	if err != nil {
		return err
	}
	values, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	if values, err = catalog.Rewrite(values, providers); err != nil {
		return err
	}
	return os.WriteFile(args[0], values, 0o644) //nolint:gosec // a file of the checkout
}
