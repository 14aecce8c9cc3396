// Command badger is examples/queue with Badger.
package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// Job is a pair: the key is the time and the name, the value the tries.
type Job struct {
	Due   int64 // in microseconds
	Name  string
	Tries byte
}

func (j *Job) key() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(j.Due)), j.Name...)
}

const patience = 5 * time.Minute // for a worker that has taken a job

// Queue is safe for concurrent use.
type Queue struct {
	db  *badger.DB
	now func() time.Time
}

// update runs a transaction, again if another worker was faster.
func (q *Queue) update(f func(tx *badger.Txn) error) error {
	for {
		if err := q.db.Update(f); !errors.Is(err, badger.ErrConflict) {
			return err
		}
	}
}

// Push adds a job. When it returns, the job survives a crash.
func (q *Queue) Push(name string) error {
	job := Job{Due: q.now().UnixMicro(), Name: name}
	return q.update(func(tx *badger.Txn) error { return tx.Set(job.key(), []byte{0}) })
}

// Take returns the next job, or nil if none is due. No other worker gets it until its patience is over.
func (q *Queue) Take() (job *Job, err error) {
	err = q.update(func(tx *badger.Txn) error {
		job = nil
		it := tx.NewIterator(badger.IteratorOptions{})
		defer it.Close()
		it.Rewind()
		if !it.Valid() {
			return nil
		}
		key := it.Item().KeyCopy(nil)
		if binary.BigEndian.Uint64(key) > uint64(q.now().UnixMicro()) {
			return nil
		}
		job = &Job{Due: q.now().Add(patience).UnixMicro(), Name: string(key[8:])}
		err := it.Item().Value(func(value []byte) error {
			job.Tries = value[0] + 1
			return nil
		})
		return errors.Join(err, tx.Delete(key), tx.Set(job.key(), []byte{job.Tries}))
	})
	return job, err
}

// Done removes a finished job. It returns false if the worker took too long: another one has the job.
func (q *Queue) Done(job Job) (bool, error) {
	err := q.update(func(tx *badger.Txn) error {
		if _, err := tx.Get(job.key()); err != nil {
			return err
		}
		return tx.Delete(job.key())
	})
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Len returns the number of jobs.
func (q *Queue) Len() (n int, err error) {
	err = q.db.View(func(tx *badger.Txn) error {
		it := tx.NewIterator(badger.IteratorOptions{})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			n++
		}
		return nil
	})
	return n, err
}

func main() {
	jobs := flag.Int("n", 20, "jobs")
	if flag.Parse(); flag.NArg() != 1 {
		log.Fatal("usage: badger [-n N] DIR")
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
func run(dir string, jobs int) {
	db := must(badger.Open(badger.DefaultOptions(dir).WithSyncWrites(true).WithLogger(nil)))
	defer db.Close()
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
		left := must(q.Len())
		fmt.Printf("%s  %d taken, %d done, %d left\n", clock.Format("15:04"), taken.Load(), done.Load(), left)
	}
}
