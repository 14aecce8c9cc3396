// Command sqlite is examples/queue with SQLite.
package main

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Job is a row of the table.
type Job struct {
	Due   int64 // in microseconds
	Name  string
	Tries int
}

const patience = 5 * time.Minute // for a worker that has taken a job

// Queue is safe for concurrent use.
type Queue struct {
	push, take, done *sql.Stmt
	now              func() time.Time
}

// Push adds a job. When it returns, the job survives a crash.
func (q *Queue) Push(name string) (sql.Result, error) {
	return q.push.Exec(q.now().UnixMicro(), name)
}

// Take returns the next job, or nil if none is due. No other worker gets it until its patience is over.
func (q *Queue) Take() (*Job, error) {
	var job Job
	now := q.now()
	err := q.take.QueryRow(now.Add(patience).UnixMicro(), now.UnixMicro()).Scan(&job.Due, &job.Name, &job.Tries)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &job, err
}

// Done removes a finished job. It returns false if the worker took too long: another one has the job.
func (q *Queue) Done(job Job) (bool, error) {
	res, err := q.done.Exec(job.Due, job.Name)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

func main() {
	jobs := flag.Int("n", 20, "jobs")
	if flag.Parse(); flag.NArg() != 1 {
		log.Fatal("usage: sqlite [-n N] FILE")
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
	db := must(sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"))
	defer db.Close()
	db.SetMaxOpenConns(1) // SQLite has one writer at a time
	must(db.Exec(`CREATE TABLE jobs (due INTEGER, name TEXT, tries INTEGER NOT NULL DEFAULT 0,
		PRIMARY KEY (due, name)) WITHOUT ROWID`))
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	q := &Queue{
		push: must(db.Prepare("INSERT INTO jobs (due, name) VALUES (?, ?)")),
		take: must(db.Prepare(`UPDATE jobs SET due = ?, tries = tries + 1 WHERE (due, name) =
			(SELECT due, name FROM jobs WHERE due <= ? ORDER BY due, name LIMIT 1) RETURNING due, name, tries`)),
		done: must(db.Prepare("DELETE FROM jobs WHERE due = ? AND name = ?")),
		now:  func() time.Time { return clock },
	}
	for i := range jobs {
		must(q.Push(fmt.Sprintf("mail %02d", i)))
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
		var left int
		must(0, db.QueryRow("SELECT count(*) FROM jobs").Scan(&left))
		fmt.Printf("%s  %d taken, %d done, %d left\n", clock.Format("15:04"), taken.Load(), done.Load(), left)
	}
}
