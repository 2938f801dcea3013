package kube

import (
	"bytes"
	"fmt"

	"k8s.io/client-go/util/jsonpath"
)

// Field is what an object has at a JSONPath, such as .status.phase; "" where it has nothing.
func Field(o map[string]any, path string) (string, error) {
	p := jsonpath.New("field").AllowMissingKeys(true)
	if err := p.Parse("{" + path + "}"); err != nil {
		return "", fmt.Errorf("reading JSONPath %s: %w", path, err)
	}
	var found bytes.Buffer
	if err := p.Execute(&found, o); err != nil {
		return "", fmt.Errorf("looking for %s: %w", path, err)
	}
	return found.String(), nil
}
