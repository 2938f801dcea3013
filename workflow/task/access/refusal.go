package access

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/internal/redact"
	"scute.dev/kube"
	"scute.dev/view"
	"scute.dev/workflow/task"
)

// FinalIfRefused makes an error final if the server would give the same response again, for example
// for a missing permission or an invalid object. It does not do so while a namespace is terminating
// or a quota is exceeded, because that can change.
func FinalIfRefused(err error) error {
	switch {
	case err == nil || task.IsFinal(err):
		return err
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return err
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return err
	case apierrors.IsForbidden(err) && !strings.Contains(err.Error(), `User "`): // RBAC errors name the user
		return task.Final(fmt.Errorf("%s: a policy or a webhook of the cluster denies it: change the inputs or the policy", redact.Message(err.Error())))
	case apierrors.IsForbidden(err):
		return task.Final(fmt.Errorf("%s: grant this permission to the account that the run acts as", redact.Message(err.Error())))
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err), kube.IsSchemaMismatch(err):
		return task.Final(errors.New(redact.Message(err.Error())))
	default:
		return err
	}
}

// FinalIfObjectRefused works like FinalIfRefused, for an error about one object. A conflict with
// another field manager is final, too. For a Secret it omits the server's message, which may quote
// values.
func FinalIfObjectRefused(ref ObjectRef, err error) error {
	if names, fields := conflictingManagers(err); len(names) > 0 {
		return task.Final(fmt.Errorf("%s: %s are owned by %s: remove them from the manifest, or set with.force: true to take them over",
			ref, view.First(fields), strings.Join(names, ", ")))
	}
	var status apierrors.APIStatus
	if ref.IsSecret() && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || kube.IsSchemaMismatch(err)) && errors.As(err, &status) {
		var fields []string
		if details := status.Status().Details; details != nil {
			for _, cause := range details.Causes {
				fields = append(fields, cause.Field)
			}
		}
		return task.Final(fmt.Errorf("the API server rejects %s as invalid (fields: %s; its message may quote the content and is not shown)", ref,
			view.First(fields)))
	}
	return FinalIfRefused(err)
}

var quotedManager = regexp.MustCompile(`conflict with "([^"]*)"`)

func conflictingManagers(err error) (names, fields []string) {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil, nil
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		name := cause.Message
		if m := quotedManager.FindStringSubmatch(cause.Message); m != nil {
			name = m[1]
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		fields = append(fields, cause.Field)
	}
	return names, fields
}
