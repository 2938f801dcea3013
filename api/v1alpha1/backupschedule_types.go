package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationBackUpNow requests a backup from a BackupSchedule. Each new value, such as the current
// time, requests one backup.
const AnnotationBackUpNow = "scute.dev/back-up-now"

// BackupScheduleSpec defines which clusters of the namespace are backed up, when and where.
type BackupScheduleSpec struct {
	// Schedule is a cron expression (minute, hour, day of the month, month, day of the week), or
	// @hourly, @daily, @weekly, @monthly or @yearly.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|[0-9*/,?-]+( +[0-9A-Za-z*/,?-]+){4})$`
	Schedule string `json:"schedule"`
	// TimeZone is the time zone of the schedule, as a name of the IANA database such as Europe/Berlin.
	// +optional
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+/-]*$`
	TimeZone string `json:"timeZone,omitempty"`
	// Suspend prevents scheduled backups. Backups requested with the annotation
	// scute.dev/back-up-now are still made.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// StartingDeadline is how late a missed backup may begin, for example after the daemon was
	// down. If several backups were missed, only the last one is made.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	// +kubebuilder:validation:XValidation:rule="self == '0' || duration(self) <= duration('168h')",message="must be at most 168h (a week)"
	StartingDeadline *Duration `json:"startingDeadline,omitempty"`
	// Timeout limits one attempt at a backup. A failed backup is retried at growing intervals,
	// until the next time of the schedule.
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	// +kubebuilder:validation:XValidation:rule="self == '0' || duration(self) <= duration('24h')",message="must be at most 24h"
	Timeout *Duration `json:"timeout,omitempty"`
	// Clusters selects the clusters to back up.
	// +required
	Clusters BackupSelection `json:"clusters"`
	// Destination is where the backups are stored.
	// +required
	Destination BackupDestination `json:"destination"`
	// Encryption defines who can read the backups.
	// +required
	Encryption BackupEncryption `json:"encryption"`
	// Retention defines which backups are deleted. By default none is deleted.
	// +optional
	Retention BackupRetention `json:"retention,omitzero"`
}

// BackupSelection selects Clusters of the namespace.
//
// +kubebuilder:validation:XValidation:rule="(has(self.names) && size(self.names) > 0 ? 1 : 0) + (has(self.selector) ? 1 : 0) + (has(self.all) && self.all ? 1 : 0) == 1",message="set one of names (a list of Cluster names), selector (a label selector), and all: true"
type BackupSelection struct {
	// Names are the names of Clusters. A backup fails while one of them does not exist.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Names []string `json:"names,omitempty"`
	// Selector selects Clusters by their labels when the backup begins.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// All selects all Clusters of the namespace, and all other movable objects in it.
	// +optional
	All bool `json:"all,omitempty"`
}

// BackupDestination is a volume of the daemon or a bucket.
//
// +kubebuilder:validation:XValidation:rule="has(self.volume) != has(self.s3)",message="set one of volume and s3"
type BackupDestination struct {
	// Volume stores the backups on the daemon's volume (clusterBackups.existingClaim of the chart),
	// in a folder for the namespace.
	// +optional
	Volume *BackupVolume `json:"volume,omitempty"`
	// S3 stores the backups in a bucket of an S3-compatible store.
	// +optional
	S3 *BackupS3 `json:"s3,omitempty"`
}

// BackupVolume is a folder on the volume.
type BackupVolume struct {
	// Folder is a subfolder of the folder of the namespace. If empty, backups are stored in the
	// folder of the namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(/[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Folder string `json:"folder,omitempty"`
}

// BackupS3 is a bucket, or a part of it.
//
// +kubebuilder:validation:XValidation:rule="!self.endpoint.startsWith('http://') || (has(self.insecure) && self.insecure)",message="endpoint must begin with https://, or set insecure: true to send the credentials in plain text"
type BackupS3 struct {
	// Endpoint is the URL of the store, such as https://s3.eu-central-1.amazonaws.com.
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^https?://([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?$`
	Endpoint string `json:"endpoint"`
	// Bucket is the name of an existing bucket.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*[a-z0-9]$`
	Bucket string `json:"bucket"`
	// Prefix is the first part of the names of the objects, without slashes at its ends. Backups
	// are stored below PREFIX/SCHEDULE-NAME.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*)?$`
	Prefix string `json:"prefix,omitempty"`
	// Region is the region of the bucket.
	// +optional
	// +kubebuilder:default="us-east-1"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	Region string `json:"region,omitempty"`
	// CredentialsSecretRef is a Secret in the same namespace with the keys accessKeyID and
	// secretAccessKey, and if needed sessionToken and ca.crt (the certificate authorities of the
	// endpoint in PEM).
	// +required
	CredentialsSecretRef BackupSecretRef `json:"credentialsSecretRef"`
	// Insecure allows an endpoint without TLS.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
}

// BackupSecretRef is a reference to a Secret in the same namespace.
type BackupSecretRef struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// BackupEncryption defines who can read the backups.
//
// +kubebuilder:validation:XValidation:rule="(has(self.recipients) && size(self.recipients) > 0) != (has(self.plaintext) && self.plaintext)",message="set recipients (public keys of age), or plaintext: true if everybody who can read the destination may have the private keys of the clusters"
type BackupEncryption struct {
	// Recipients are public keys of age (age1...). Each of their private keys can decrypt the backups.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:Pattern=`^age1[a-z0-9]+$`
	Recipients []string `json:"recipients,omitempty"`
	// Plaintext stores the backups unencrypted.
	// +optional
	Plaintext bool `json:"plaintext,omitempty"`
}

// BackupRetention defines which backups are kept. After each successful backup, the backups that
// neither keepLast nor keepFor keeps are deleted. The last successful backup is never deleted, and
// neither is a file that the schedule did not create.
type BackupRetention struct {
	// KeepLast is the number of newest backups to keep.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	KeepLast *int32 `json:"keepLast,omitempty"`
	// KeepFor is the age up to which backups are kept.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	KeepFor *Duration `json:"keepFor,omitempty"`
}

// BackupSchedulePhase is the state of a BackupSchedule.
// +kubebuilder:validation:Enum=Scheduled;Running;Failing;Suspended;Ended
type BackupSchedulePhase string

// The phases of a BackupSchedule.
const (
	// BackupScheduled means that the schedule waits for its next time.
	BackupScheduled BackupSchedulePhase = "Scheduled"
	// BackupRunning means that a backup is being made.
	BackupRunning BackupSchedulePhase = "Running"
	// BackupFailing means that the last attempt failed and will be retried.
	BackupFailing BackupSchedulePhase = "Failing"
	// BackupSuspended means that spec.suspend is true.
	BackupSuspended BackupSchedulePhase = "Suspended"
	// BackupEnded means that the resource was deleted. Its backups are kept.
	BackupEnded BackupSchedulePhase = "Ended"
)

// BackupScheduleStatus is the state of the schedule in the event log.
type BackupScheduleStatus struct {
	// ObservedGeneration is the generation of the spec that the event log has recorded.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ScheduleID is the ID of the schedule in the event log.
	// +optional
	ScheduleID string `json:"scheduleID,omitempty"`
	// +optional
	Phase BackupSchedulePhase `json:"phase,omitempty"`
	// Message describes the current state in one sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// Next is what a user can do now; empty if nothing is needed.
	// +optional
	Next string `json:"next,omitempty"`
	// LastScheduleTime is the scheduled time of the last backup that began.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// LastSuccessfulTime is when the last successful backup completed.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	// NextScheduleTime is when the next backup begins.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// LastRequest is the value of the annotation scute.dev/back-up-now that requested the last backup.
	// +optional
	LastRequest string `json:"lastRequest,omitempty"`
	// Kept is the number of backups of this schedule at its destination.
	// +optional
	Kept int `json:"kept,omitempty"`
	// Backups are the newest backups at the destination, at most twenty, newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Backups []BackupRecord `json:"backups,omitempty"`
	// LogID is the ID of the event log to which logSequence refers.
	// +optional
	LogID string `json:"logID,omitempty"`
	// LogSequence is the sequence of the schedule's last commit that this status includes.
	// +optional
	LogSequence int64 `json:"logSequence,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BackupRecord is a completed backup.
type BackupRecord struct {
	ID string `json:"id"`
	// Path is the location of the backup: s3://BUCKET/NAME, or the folder on the volume.
	Path string `json:"path"`
	// TakenAt is when all clusters had been read.
	TakenAt metav1.Time `json:"takenAt"`
	// +optional
	Clusters int `json:"clusters,omitempty"`
	// +optional
	Objects int `json:"objects,omitempty"`
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
}

// BackupSchedule backs up Cluster API clusters of its namespace on a schedule, to a volume or to an
// S3-compatible store. If it is deleted, its backups are kept.
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

	// Unreadable is the part of the object that could not be decoded. It is not a field of the resource.
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
