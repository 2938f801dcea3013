package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/minio/minio-go/v7"

	"scute.dev/kube/guard"
)

// convertError converts an error of the client to an Error without the store's text: an endpoint
// may lead to something other than a store, whose responses must not be readable this way.
func convertError(err error) error {
	if err == nil {
		return nil
	}
	var answer minio.ErrorResponse
	if errors.As(err, &answer) && answer.StatusCode != 0 {
		return responseError(answer)
	}
	var certificate *tls.CertificateVerificationError
	var network *net.OpError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, guard.ErrDenied):
		return newError("AddressNotAllowed", FieldEndpoint, denialText(err),
			"use another endpoint, or ask the operator of scute to allow the address", err)
	case errors.As(err, &certificate):
		return newError(ReasonNotTrusted, FieldEndpoint, "its certificate is not trusted: "+certificate.Unwrap().Error(),
			"put its certificate authority into the key ca.crt of the credentials", err)
	case errors.Is(err, context.DeadlineExceeded):
		return newError("StoreTooSlow", FieldEndpoint, "it did not answer in time",
			"check the store, or raise the timeout if it is slow", err)
	case errors.As(err, &tooLarge):
		return newError("StoreFailed", FieldEndpoint, "the response of the store is too large",
			"check that the endpoint is an S3-compatible store", err)
	case errors.As(err, &network):
		return newError("StoreUnreachable", FieldEndpoint, "it cannot be reached: "+network.Error(),
			"check the store and the network", err)
	default:
		return newError("StoreUnreachable", FieldEndpoint, "the connection broke, or the response is not from an S3 store",
			"check that the endpoint is an S3-compatible store", err)
	}
}

func denialText(err error) string {
	var network *net.OpError
	if errors.As(err, &network) && network.Err != nil {
		return network.Err.Error()
	}
	return guard.ErrDenied.Error()
}

func responseError(answer minio.ErrorResponse) error {
	code := fmt.Sprintf("it responded with %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	refused := newError("CredentialsRefused", FieldCredentials, code,
		"correct accessKeyID and secretAccessKey, and permit them to put, get, list and delete objects", answer)
	switch answer.Code {
	case "NoSuchKey":
		return fmt.Errorf("%w: %s", ErrNotFound, code)
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AccountProblem", "AllAccessDisabled":
		refused.Message = "the store rejects them (" + answer.Code + ")"
		return refused
	}
	switch answer.StatusCode {
	case http.StatusForbidden, http.StatusUnauthorized:
		return refused
	}
	switch answer.Code {
	case "NoSuchBucket", "InvalidBucketName", "PermanentRedirect", "AuthorizationHeaderMalformed", "QuotaExceeded":
		return newError("BucketRefused", FieldBucket, "the store rejects it ("+answer.Code+")",
			"create the bucket, or correct its name and its region", answer)
	}
	if answer.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%w: %s", ErrNotFound, code)
	}
	return &Error{Reason: "StoreFailed", Field: FieldEndpoint, Message: code, Next: "check the store", err: answer}
}
