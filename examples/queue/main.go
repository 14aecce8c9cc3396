// Command queue is a queue of jobs that survives crashes of the store and of workers.
//
// The key of a job begins with the time from which on a worker may take it, so the next job is the first
// row. A worker that takes a job moves it into the future: if it has not finished by then, another one
// takes the job. Deleted rows cost nothing later: a queue stays as fast as on its first day.
//
//	go run ./examples/queue queue.oribi
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
)

// Job is a row of the table.
type Job struct {
	Due   time.Time `oribi:"due,key"`
	Name  string    `oribi:"name,key,varchar(80)"`
	Tries int       `oribi:"tries,int16"`
}

const patience = 5 * time.Minute // for a worker that has taken a job

// Queue is safe for concurrent use.
type Queue struct {
	store *oribi.Store
	jobs  *oribi.TableOf[Job]
	now   func() time.Time
}

// Push adds a job. When it returns, the job survives a crash.
func (q *Queue) Push(ctx context.Context, name string) (mvcc.Timestamp, error) {
	return q.jobs.Insert(ctx, Job{Due: q.now(), Name: name})
}

// Take returns the next job, or nil if none is due. No other worker gets it until its patience is over.
func (q *Queue) Take(ctx context.Context) (job *Job, err error) {
	err = q.store.Update(ctx, func(tx *oribi.Tx) error { // runs again if another worker was faster
		jobs := q.jobs.In(tx)
		job = nil
		for next, err := range jobs.Scan(oribi.To(oribi.Key{q.now()}), oribi.Limit(1)) {
			if err == nil {
				err = jobs.Delete(next)
			}
			if err != nil {
				return err
			}
			next.Due, next.Tries = q.now().Add(patience), next.Tries+1
			job = &next
			return jobs.Insert(next)
		}
		return nil
	})
	return job, err
}

// Done removes a finished job. It returns false if the worker took too long: another one has the job.
func (q *Queue) Done(ctx context.Context, job Job) (bool, error) {
	if _, err := q.jobs.Delete(ctx, job); !errors.Is(err, oribi.ErrNotFound) {
		return err == nil, err
	}
	return false, nil
}

func main() {
	jobs := flag.Int("n", 20, "jobs")
	if flag.Parse(); flag.NArg() != 1 {
		log.Fatal("usage: queue [-n N] DIR")
	}
	run(context.Background(), flag.Arg(0), *jobs)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// run plays four workers of which one dies with a job. It moves the store's clock, so that nobody waits.
func run(ctx context.Context, dir string, jobs int) {
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	store := must(oribi.Open(dir, &oribi.Options{History: time.Minute, Clock: mvcc.NewHybridClock(now)}))
	defer store.Close()
	q := &Queue{store, must(oribi.OpenTable[Job](store, "jobs")), now}
	for i := range jobs {
		must(q.Push(ctx, fmt.Sprintf("mail %02d", i)))
	}
	for _, pause := range []time.Duration{time.Minute, time.Minute, patience} {
		clock = clock.Add(pause)
		var workers sync.WaitGroup
		var taken, done atomic.Int32
		for range 4 {
			workers.Go(func() {
				for job := must(q.Take(ctx)); job != nil; job = must(q.Take(ctx)) {
					if taken.Add(1); job.Name == "mail 13" && job.Tries == 1 {
						return // this worker dies
					}
					if must(q.Done(ctx, *job)) {
						done.Add(1)
					}
				}
			})
		}
		workers.Wait()
		left := must(q.jobs.Table.Count(ctx))
		fmt.Printf("%s  %d taken, %d done, %d left\n", clock.Format("15:04"), taken.Load(), done.Load(), left)
	}
}
