package runner

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scute.dev/backup/schedule"
)

// slowStore is a volume whose calls block until they receive from may.
type slowStore struct {
	proceed chan struct{}
}

func (s slowStore) Put(_ context.Context, _ string, from io.ReaderAt, size int64) error {
	_, err := io.Copy(io.Discard, &pacedReader{io.NewSectionReader(from, 0, size), s.proceed})
	return err
}

func (s slowStore) Write(context.Context, string, io.Reader) (int64, error) {
	return 0, errors.New("a backup has no files of unknown size")
}

func (s slowStore) Get(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(&pacedReader{strings.NewReader("content"), s.proceed}), nil
}

func (s slowStore) List(_ context.Context, _ string, fn func(string) error) error {
	for range 3 {
		<-s.proceed
		if err := fn("a"); err != nil {
			return err
		}
	}
	return nil
}

func (s slowStore) Delete(context.Context, string) error {
	<-s.proceed
	return nil
}

func (slowStore) Close() error { return nil }

// pacedReader reads one byte for each value of may.
type pacedReader struct {
	io.Reader
	proceed chan struct{}
}

func (p *pacedReader) Read(b []byte) (int, error) {
	<-p.proceed
	return p.Reader.Read(b[:1])
}

// TestAVolumeThatHangs checks that each call on a hanging volume returns with an error, and that further calls fail
// until the first one has returned. A slow volume is waited for.
func TestAVolumeThatHangs(t *testing.T) {
	for name, call := range map[string]func(context.Context, Store) error{
		"put":    func(ctx context.Context, in Store) error { return in.Put(ctx, "a", strings.NewReader("abc"), 3) },
		"delete": func(ctx context.Context, in Store) error { return in.Delete(ctx, "a") },
		"list":   func(ctx context.Context, in Store) error { return in.List(ctx, "", func(string) error { return nil }) },
		"get": func(ctx context.Context, in Store) error {
			file, err := in.Get(ctx, "a")
			if err == nil {
				_, err = io.ReadAll(file)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				may := make(chan struct{})
				var r Runner
				r.Destination = func(context.Context, *schedule.Spec) (Store, error) { return slowStore{may}, nil }
				in, err := r.open(t.Context(), &schedule.Spec{})
				if err != nil {
					t.Fatal(err)
				}
				const timeout = time.Hour
				work := func() (time.Duration, error) {
					ctx, cancel := context.WithTimeout(t.Context(), timeout)
					defer cancel()
					begun := time.Now()
					_, err := onVolume(ctx, &r, &schedule.Spec{}, func() (struct{}, error) { return struct{}{}, call(ctx, in) })
					return time.Since(begun), err
				}
				done := make(chan struct{})
				go func() { // a slow volume
					for {
						select {
						case <-time.After(time.Minute):
						case <-done:
							return
						}
						select {
						case may <- struct{}{}:
						case <-done:
							return
						}
					}
				}()
				if took, err := work(); err != nil {
					t.Errorf("slow volume: after %s: %v", took, err)
				}
				close(done)
				synctest.Wait()

				hung := func(err error) bool { return err != nil && ProblemOf(err).Reason == "VolumeHangs" }
				if took, err := work(); !hung(err) || took != timeout+hangGrace {
					t.Errorf("hanging volume: after %s: %v", took, err)
				}
				if took, err := work(); !hung(err) || took > 0 {
					t.Errorf("second call on a hanging volume: after %s: %v", took, err)
				}
				if _, err := r.open(t.Context(), &schedule.Spec{}); !hung(err) {
					t.Errorf("open of a hanging volume for another schedule = %v, want VolumeHangs", err)
				}
				if _, err := r.open(t.Context(), &schedule.Spec{Destination: schedule.Destination{Bucket: "b"}}); err != nil {
					t.Errorf("open of a bucket = %v", err)
				}
				close(may)
				synctest.Wait()
				if took, err := work(); err != nil || took > 0 {
					t.Errorf("call after the volume recovered: after %s: %v", took, err)
				}
			})
		})
	}
}

// TestABackupOnAVolumeThatHangs checks that a backup fails at once while an earlier call on the volume hangs, and
// starts after that call has returned.
func TestABackupOnAVolumeThatHangs(t *testing.T) {
	w := newFixture(t)
	w.volume.abandoned.Add(1)
	w.Destination = func(context.Context, *schedule.Spec) (Store, error) { return nil, errors.New("it was opened") }
	w.record(schedule.Requested{Value: "x"})
	w.drive()
	if s := w.state(); s.Problem.Reason != "VolumeHangs" || len(s.Incomplete) > 0 {
		t.Errorf("problem = %+v, want VolumeHangs", s.Problem)
	}
	w.volume.abandoned.Add(-1)
	w.now = w.now.Add(time.Minute)
	w.drive()
	if s := w.state(); s.Problem.Message != "it was opened" {
		t.Errorf("problem = %+v, want the error of the destination", s.Problem)
	}
}

// closingStore is a volume that counts calls of Close.
type closingStore struct {
	slowStore
	closed *int
}

func (c closingStore) Close() error {
	*c.closed++
	return nil
}

// TestWhatIsOpenedTooLateIsClosed checks that a volume that was opened after its timeout is closed
// again, so that a hanging volume leaks no files.
func TestWhatIsOpenedTooLateIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := 0
		in := closingStore{slowStore{make(chan struct{})}, &closed}
		r := Runner{Destination: func(context.Context, *schedule.Spec) (Store, error) {
			<-in.proceed
			return in, nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := r.open(ctx, &schedule.Spec{}); err == nil || closed != 0 {
			t.Errorf("error %v, %d closed, want an error and none closed", err, closed)
		}
		close(in.proceed)
		synctest.Wait()
		if closed != 1 || r.volume.abandoned.Load() != 0 {
			t.Errorf("%d closed, want 1", closed)
		}
	})
}
