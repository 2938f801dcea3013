package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationBackUpNow asks a BackupSchedule for a backup now. Each new value makes one; the value is any text, a time for example.
const AnnotationBackUpNow = "scute.dev/back-up-now"

// BackupScheduleSpec says which clusters of the schedule's namespace are backed up, when, and where to.
type BackupScheduleSpec struct {
	// Schedule says when, in the form of cron: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly,
	// @monthly or @yearly.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|[0-9*/,?-]+( +[0-9A-Za-z*/,?-]+){4})$`
	Schedule string `json:"schedule"`
	// TimeZone of the schedule, a name of the IANA database such as Europe/Berlin.
	// +optional
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+/-]*$`
	TimeZone string `json:"timeZone,omitempty"`
	// Suspend begins no backup while it is true, those that are asked for with the annotation scute.dev/back-up-now excepted.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// StartingDeadline is how late a backup may begin that was missed, because no daemon ran for example. Of several that were
	// missed the last one alone is made.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	// +kubebuilder:validation:XValidation:rule="self == '0' || duration(self) <= duration('168h')",message="must be 168h (a week) at most"
	StartingDeadline *Duration `json:"startingDeadline,omitempty"`
	// Timeout bounds one attempt at a backup. What fails is tried again, less and less often, until the next time of the schedule.
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	// +kubebuilder:validation:XValidation:rule="self == '0' || duration(self) <= duration('24h')",message="must be 24h at most"
	Timeout *Duration `json:"timeout,omitempty"`
	// Clusters selects what is backed up.
	// +required
	Clusters BackupSelection `json:"clusters"`
	// Destination is where backups are kept.
	// +required
	Destination BackupDestination `json:"destination"`
	// Encryption says who can read the backups.
	// +required
	Encryption BackupEncryption `json:"encryption"`
	// Retention says which backups are removed; without it none is.
	// +optional
	Retention BackupRetention `json:"retention,omitzero"`
}

// BackupSelection selects Clusters of the namespace.
//
// +kubebuilder:validation:XValidation:rule="(has(self.names) && size(self.names) > 0 ? 1 : 0) + (has(self.selector) ? 1 : 0) + (has(self.all) && self.all ? 1 : 0) == 1",message="set one of names (a list of Cluster names), selector (a label selector), and all: true"
type BackupSelection struct {
	// Names of Clusters. A backup fails while one of them does not exist.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Names []string `json:"names,omitempty"`
	// Selector chooses Clusters by their labels when the backup begins.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// All backs up all Clusters of the namespace, and what is movable beside them.
	// +optional
	All bool `json:"all,omitempty"`
}

// BackupDestination is a volume of the daemon or a bucket.
//
// +kubebuilder:validation:XValidation:rule="has(self.volume) != has(self.s3)",message="set one of volume and s3"
type BackupDestination struct {
	// Volume keeps the backups on the volume that the operator of scute gave to the daemon (clusterBackups.existingClaim of the
	// chart), in a folder of the namespace.
	// +optional
	Volume *BackupVolume `json:"volume,omitempty"`
	// S3 keeps the backups in a bucket of an S3-compatible store.
	// +optional
	S3 *BackupS3 `json:"s3,omitempty"`
}

// BackupVolume is a folder on the volume.
type BackupVolume struct {
	// Folder below that of the namespace; empty is that one itself.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(/[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Folder string `json:"folder,omitempty"`
}

// BackupS3 is a part of a bucket.
//
// +kubebuilder:validation:XValidation:rule="!self.endpoint.startsWith('http://') || (has(self.insecure) && self.insecure)",message="endpoint must begin with https://, or insecure: true must say that the credentials are sent in plain text"
type BackupS3 struct {
	// Endpoint of the store, such as https://s3.eu-central-1.amazonaws.com.
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^https?://([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?$`
	Endpoint string `json:"endpoint"`
	// Bucket exists already.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*[a-z0-9]$`
	Bucket string `json:"bucket"`
	// Prefix of the names of the objects, without slashes at its ends; backups are below PREFIX/NAME-OF-THE-SCHEDULE.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*)?$`
	Prefix string `json:"prefix,omitempty"`
	// Region of the bucket.
	// +optional
	// +kubebuilder:default="us-east-1"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	Region string `json:"region,omitempty"`
	// CredentialsSecretRef names a Secret of the same namespace with the keys accessKeyID and secretAccessKey, and where they are
	// needed sessionToken and ca.crt, the certificate authorities of the endpoint in PEM.
	// +required
	CredentialsSecretRef BackupSecretRef `json:"credentialsSecretRef"`
	// Insecure permits an endpoint without TLS.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
}

// BackupSecretRef names a Secret of the same namespace.
type BackupSecretRef struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// BackupEncryption says who can read the backups.
//
// +kubebuilder:validation:XValidation:rule="(has(self.recipients) && size(self.recipients) > 0) != (has(self.plaintext) && self.plaintext)",message="set recipients (public keys of age), or plaintext: true if everybody who can read the destination may have the private keys of the clusters"
type BackupEncryption struct {
	// Recipients are public keys of age (age1...). Each of them can decrypt the backups.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:Pattern=`^age1[a-z0-9]+$`
	Recipients []string `json:"recipients,omitempty"`
	// Plaintext leaves the backups unencrypted.
	// +optional
	Plaintext bool `json:"plaintext,omitempty"`
}

// BackupRetention says which backups stay. One that neither keepLast nor keepFor keeps is removed after the next backup that
// succeeded. The last good one is never removed, nor anything that the schedule did not make.
type BackupRetention struct {
	// KeepLast keeps so many of the newest backups.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	KeepLast *int32 `json:"keepLast,omitempty"`
	// KeepFor keeps backups that are younger.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	KeepFor *Duration `json:"keepFor,omitempty"`
}

// BackupSchedulePhase says what a BackupSchedule does.
// +kubebuilder:validation:Enum=Scheduled;Running;Failing;Suspended;Ended
type BackupSchedulePhase string

// The phases of a BackupSchedule.
const (
	// BackupScheduled: it waits for the next time of its schedule.
	BackupScheduled BackupSchedulePhase = "Scheduled"
	// BackupRunning: a backup is made.
	BackupRunning BackupSchedulePhase = "Running"
	// BackupFailing: the last attempt failed. It is tried again.
	BackupFailing BackupSchedulePhase = "Failing"
	// BackupSuspended: spec.suspend is true.
	BackupSuspended BackupSchedulePhase = "Suspended"
	// BackupEnded: the resource was deleted. Its backups are kept.
	BackupEnded BackupSchedulePhase = "Ended"
)

// BackupScheduleStatus is the log's view of the schedule.
type BackupScheduleStatus struct {
	// ObservedGeneration is the generation of the spec that the log has taken note of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ScheduleID names the schedule in the log.
	// +optional
	ScheduleID string `json:"scheduleID,omitempty"`
	// +optional
	Phase BackupSchedulePhase `json:"phase,omitempty"`
	// Message says in one sentence what happens now.
	// +optional
	Message string `json:"message,omitempty"`
	// Next is what a human can do now; empty when nothing is needed.
	// +optional
	Next string `json:"next,omitempty"`
	// LastScheduleTime is the time of the schedule for which a backup was begun last.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// LastSuccessfulTime is when the last backup was complete.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	// NextScheduleTime is when the next backup begins.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// LastRequest is the value of the annotation scute.dev/back-up-now for which a backup was begun last.
	// +optional
	LastRequest string `json:"lastRequest,omitempty"`
	// Kept counts the backups of this schedule at its destination.
	// +optional
	Kept int `json:"kept,omitempty"`
	// Backups are those, the newest first, the first twenty.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Backups []BackupRecord `json:"backups,omitempty"`
	// LogID is the ID of the event log that logSequence counts in.
	// +optional
	LogID string `json:"logID,omitempty"`
	// LogSequence is the sequence of the schedule's last commit that this status reflects.
	// +optional
	LogSequence int64 `json:"logSequence,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BackupRecord is a backup that is complete.
type BackupRecord struct {
	ID string `json:"id"`
	// Place is where it is: s3://BUCKET/NAME, or the folder on the volume.
	Place string `json:"place"`
	// TakenAt is when the clusters had been read.
	TakenAt metav1.Time `json:"takenAt"`
	// +optional
	Clusters int `json:"clusters,omitempty"`
	// +optional
	Objects int `json:"objects,omitempty"`
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
}

// BackupSchedule backs up Cluster API clusters of its namespace on a schedule, to a volume or to an S3-compatible store. Deleting it
// keeps its backups.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=scute;cluster-api
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Last success",type=date,JSONPath=`.status.lastSuccessfulTime`
// +kubebuilder:printcolumn:name="Kept",type=integer,JSONPath=`.status.kept`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
type BackupSchedule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec BackupScheduleSpec `json:"spec"`
	// +optional
	Status BackupScheduleStatus `json:"status,omitempty"`

	// Unreadable is what could not be read of it; it is not of the resource.
	Unreadable `json:"-"`
}

// BackupScheduleList is a list of BackupSchedules.
//
// +kubebuilder:object:root=true
type BackupScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BackupSchedule `json:"items"`
}
