package crd

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestNoSchema(t *testing.T) {
	if _, err := newValidator(&apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1"}); err == nil {
		t.Error("newValidator without a schema succeeded")
	}
}
