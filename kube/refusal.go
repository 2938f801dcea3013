package kube

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxNamedCauses bounds how many fields of a refused object a message names.
const maxNamedCauses = 10

// withoutValues removes the values of fields from an API server's rejection of an object (422), and names every field. The server quotes each value,
// which may be a password, and webhooks quote it again in their messages.
func withoutValues(err error) error {
	var refused *apierrors.StatusError
	if !errors.As(err, &refused) || !apierrors.IsInvalid(err) || refused.ErrStatus.Details == nil || len(refused.ErrStatus.Details.Causes) == 0 {
		return err
	}
	clean := &apierrors.StatusError{ErrStatus: *refused.ErrStatus.DeepCopy()}
	details := clean.ErrStatus.Details
	var fields []string
	for i := range details.Causes {
		c := &details.Causes[i]
		switch c.Type {
		case metav1.CauseTypeFieldValueInvalid, metav1.CauseTypeFieldValueDuplicate, metav1.CauseTypeFieldValueNotSupported,
			metav1.CauseTypeFieldValueNotFound, metav1.CauseTypeTypeInvalid:
			c.Message, _, _ = strings.Cut(c.Message, ":")
		}
		fields = append(fields, strings.TrimPrefix(c.Field+": "+c.Message, ": "))
	}
	if more := len(fields) - maxNamedCauses; more > 0 {
		fields = append(fields[:maxNamedCauses], fmt.Sprintf("and %d more", more))
	}
	clean.ErrStatus.Message = fmt.Sprintf("%s %q is invalid: %s", details.Kind, details.Name, strings.Join(fields, "; "))
	return clean
}
