package access

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// exactKinds refuses a kind that is not spelled as the API server spells it. The mapper of client-go also finds kinds in lower case, but the objects keep
// that spelling: "secret" would not be treated as a Secret.
type exactKinds struct{ meta.RESTMapper }

func newExactKinds(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(config, client)
	return exactKinds{mapper}, err
}

// RESTMapping returns the mapping of a kind. The error for a wrong spelling is a bad request, which is not retried.
func (m exactKinds) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err != nil {
		return nil, err
	}
	if served, err := m.KindFor(mapping.Resource); err == nil && served.Kind != kind.Kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("kind %q is spelled %q: correct the spelling", kind.Kind, served.Kind))
	}
	return mapping, nil
}
