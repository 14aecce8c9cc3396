// Command bbolt is examples/queue with bbolt.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Job is a pair in the bucket of jobs: the key is the time and the name, the value the tries.
type Job struct {
	Due   int64 // in microseconds
	Name  string
	Tries byte
}

func (j *Job) key() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(j.Due)), j.Name...)
}

const patience = 5 * time.Minute // for a worker that has taken a job

var bucket = []byte("jobs")

// Queue is safe for concurrent use.
type Queue struct {
	db  *bolt.DB
	now func() time.Time
}

// Push adds a job. When it returns, the job survives a crash.
func (q *Queue) Push(name string) error {
	job := Job{Due: q.now().UnixMicro(), Name: name}
	return q.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucket).Put(job.key(), []byte{0}) })
}

// Take returns the next job, or nil if none is due. No other worker gets it until its patience is over.
func (q *Queue) Take() (job *Job, err error) {
	err = q.db.Batch(func(tx *bolt.Tx) error { // workers share a transaction
		job = nil
		c := tx.Bucket(bucket).Cursor()
		key, value := c.First()
		if key == nil || binary.BigEndian.Uint64(key) > uint64(q.now().UnixMicro()) {
			return nil
		}
		job = &Job{q.now().Add(patience).UnixMicro(), string(key[8:]), value[0] + 1}
		if err := c.Delete(); err != nil {
			return err
		}
		return tx.Bucket(bucket).Put(job.key(), []byte{job.Tries})
	})
	return job, err
}

// Done removes a finished job. It returns false if the worker took too long: another one has the job.
func (q *Queue) Done(job Job) (done bool, err error) {
	err = q.db.Batch(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		done = b.Get(job.key()) != nil
		return b.Delete(job.key())
	})
	return done, err
}

func main() {
	jobs := flag.Int("n", 20, "jobs")
	if flag.Parse(); flag.NArg() != 1 {
		log.Fatal("usage: bbolt [-n N] FILE")
	}
	run(flag.Arg(0), *jobs)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// run plays four workers of which one dies with a job. It moves the clock, so that nobody waits.
func run(file string, jobs int) {
	db := must(bolt.Open(file, 0o600, nil))
	defer db.Close()
	db.MaxBatchSize, db.MaxBatchDelay = 2, 100*time.Microsecond // pairs of workers
	must(0, db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket(bucket)
		return err
	}))
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	q := &Queue{db, func() time.Time { return clock }}
	for i := range jobs {
		must(0, q.Push(fmt.Sprintf("mail %02d", i)))
	}
	for _, pause := range []time.Duration{time.Minute, time.Minute, patience} {
		clock = clock.Add(pause)
		var workers sync.WaitGroup
		var taken, done atomic.Int32
		for range 4 {
			workers.Go(func() {
				for job := must(q.Take()); job != nil; job = must(q.Take()) {
					if taken.Add(1); job.Name == "mail 13" && job.Tries == 1 {
						return // this worker dies
					}
					if must(q.Done(*job)) {
						done.Add(1)
					}
				}
			})
		}
		workers.Wait()
		must(0, db.View(func(tx *bolt.Tx) error {
			fmt.Printf("%s  %d taken, %d done, %d left\n", clock.Format("15:04"), taken.Load(), done.Load(),
				tx.Bucket(bucket).Stats().KeyN)
			return nil
		}))
	}
}
