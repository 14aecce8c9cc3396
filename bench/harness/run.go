package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// Config configures a run.
type Config struct {
	Env      Env                 // except Dir, Inputs and Profile
	Rounds   int                 // 0 = the default of the scale
	Dir      string              // directory for inputs and stores
	Profiles string              // directory for profiles; empty = no profiles
	Progress Progress            // called for each step; may be nil
	Programs map[string]string   // built programs of nested modules, by directory
	Missing  []Missing           // peers that cannot run; they are removed from the workloads
	Keep     func(*Report) error // called after each workload with all results so far; may be nil
	Commit   string              // see Report.Commit
	Resume   *Report             // results of an interrupted run, which are not measured again; nil = none
}

// Progress is called with the number of completed steps, the number of all steps, and the current
// step.
type Progress func(step, all int, what string)

// Run measures workloads in sequence. A peer that fails takes no further part. The report contains
// everything that was measured; the error describes failed peers and different answers. A run that
// is canceled, or fills the disk, returns the results of the completed workloads and removes the
// directories of peers.
func Run(ctx context.Context, workloads []Workload, c Config) (*Report, error) {
	if c.Rounds == 0 {
		c.Rounds = c.Env.Scale.Rounds
	}
	c.Env.Inputs = filepath.Join(c.Dir, "inputs")
	r := &Report{Version: reportVersion, Scale: c.Env.Scale.Name, Rounds: c.Rounds,
		Started: time.Now().UTC().Truncate(time.Second), Missing: c.Missing, Commit: c.Commit,
		Machine: fmt.Sprintf("%s/%s, %d processors, %s", runtime.GOOS, runtime.GOARCH,
			runtime.NumCPU(), runtime.Version())}
	if c.Resume != nil {
		if err := r.resume(c.Resume); err != nil {
			return r, err
		}
	}
	if err := os.MkdirAll(c.Env.Inputs, 0o755); err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go watchSpace(ctx, c.Dir, cancel)
	state := &runState{config: c, cancel: cancel, prepared: map[string]bool{}, failed: map[string]error{},
		groups: map[string]int{}, told: map[string]bool{}}
	for i := range workloads {
		state.all += (c.Rounds + 1) * len(workloads[i].Peers)
		state.groups[workloads[i].Group]++
	}
	var errs []error
	for i := range workloads {
		w := &workloads[i]
		if r.Complete(w) {
			state.step += (c.Rounds + 1) * len(w.Peers)
			state.leave(w)
			continue
		}
		m := measuring{ctx: ctx, w: w, runState: state,
			result: WorkloadResult{Workload: w.Name, About: w.About, Unit: w.Unit, More: w.More}}
		begin := time.Now()
		var err error
		if !m.derive(r) {
			err = m.run()
		}
		m.result.Seconds = time.Since(begin).Seconds()
		r.Seconds += m.result.Seconds
		if ctx.Err() != nil {
			state.removeAll(workloads)
			return r, fmt.Errorf("%s: %w; the results of earlier workloads are kept", w.Name, context.Cause(ctx))
		}
		errs = append(errs, err, m.result.compare())
		m.result.judge(w, r)
		r.put(&m.result)
		if c.Keep != nil {
			if err := c.Keep(r); err != nil {
				return r, err
			}
		}
		state.leave(w)
	}
	return r, errors.Join(errs...)
}

// runState is shared by all workloads of a run.
type runState struct {
	config    Config
	cancel    context.CancelCauseFunc
	prepared  map[string]bool  // prepared states of groups, by directory
	failed    map[string]error // errors of states that could not be prepared
	groups    map[string]int   // number of remaining workloads
	told      map[string]bool  // failures that are already in the run's error
	step, all int
}

// leave removes the states of a workload's group after its last workload.
func (s *runState) leave(w *Workload) {
	if s.groups[w.Group]--; w.Group != "" && s.groups[w.Group] == 0 {
		os.RemoveAll(filepath.Join(s.config.Dir, w.Group))
	}
}

// removeAll removes the remaining directories of peers.
func (s *runState) removeAll(workloads []Workload) {
	for i := range workloads {
		for _, name := range []string{workloads[i].Name, workloads[i].Group} {
			if name != "" {
				os.RemoveAll(filepath.Join(s.config.Dir, name))
			}
		}
	}
}

// measuring is the measurement of one workload.
type measuring struct {
	*runState
	ctx    context.Context
	w      *Workload
	specs  []spec   // by peer
	states []string // by peer: directory of the group's state; empty = none
	result WorkloadResult
}

func (m *measuring) run() error {
	if m.w.Inputs != nil {
		m.say(0, "inputs")
		if err := m.w.Inputs(&m.config.Env); err != nil {
			if full(err) {
				m.cancel(fmt.Errorf("%w: %w", errFull, err))
			}
			return fmt.Errorf("%s: inputs: %w", m.w.Name, err)
		}
	}
	for i := range m.w.Peers {
		m.begin(i)
		if !m.w.Fresh || m.w.Group != "" {
			begin := time.Now()
			m.note(i, m.prepare(i))
			m.result.Peers[i].Prepare = time.Since(begin).Seconds()
		}
		m.say(1, "")
	}
	for round := range m.config.Rounds {
		for i := range m.w.Peers {
			if m.result.Peers[i].Failed == "" {
				begin := time.Now()
				m.note(i, m.round(i, round))
				m.result.Peers[i].Seconds += time.Since(begin).Seconds()
			}
			m.say(1, "")
		}
	}
	var errs []error
	for i := range m.w.Peers {
		p := &m.result.Peers[i]
		if p.Failed == "" {
			m.note(i, m.memory(i))
		}
		if m.states[i] == "" || m.w.Copies {
			os.RemoveAll(m.specs[i].Env.Dir)
			os.Remove(filepath.Dir(m.specs[i].Env.Dir)) // when it is the last workload of the group
		}
		if p.Failed != "" && !m.told[p.Failed] {
			m.told[p.Failed] = true // a state that cannot be prepared is a failure of every workload of its group
			errs = append(errs, errors.New(p.Failed))
		}
	}
	return errors.Join(errs...)
}

// derive computes the result from the workload that does the same work; false if that was not
// possible.
func (m *measuring) derive(r *Report) bool {
	of := r.workload(m.w.Of)
	for i := range m.w.Peers {
		if of == nil || of.peer(m.w.Peers[i].Name) == nil {
			return false
		}
	}
	for i := range m.w.Peers {
		did := of.peer(m.w.Peers[i].Name)
		p := PeerResult{Peer: did.Peer, Ours: did.Ours, Aside: did.Aside, Failed: did.Failed, PeakBytes: did.PeakBytes}
		for _, round := range did.Rounds {
			got := m.w.Derive(round)
			if !(got.Value > 0) {
				p.Failed = m.nothing(p.Peer, got)
				break
			}
			p.Rounds = append(p.Rounds, got)
		}
		m.result.Peers = append(m.result.Peers, p)
	}
	m.say((m.config.Rounds+1)*len(m.w.Peers), "")
	return true
}

// begin chooses the directory in which a peer works.
func (m *measuring) begin(peer int) {
	p := &m.w.Peers[peer]
	env := m.config.Env
	env.Dir = filepath.Join(m.config.Dir, m.w.Name, p.Name)
	state := ""
	if m.w.Group != "" {
		name := p.Store
		if name == "" {
			name = p.Name
		}
		if state = filepath.Join(m.config.Dir, m.w.Group, name); !m.w.Copies {
			env.Dir = state
		}
	}
	m.states = append(m.states, state)
	m.specs = append(m.specs, spec{Workload: m.w.Name, Peer: p.Name, Env: env, Program: m.config.Programs[p.Module]})
	m.result.Peers = append(m.result.Peers, PeerResult{Peer: p.Name, Ours: p.Ours, Aside: p.Aside})
}

// note records the failure of a peer.
func (m *measuring) note(peer int, err error) {
	if err != nil && full(err) {
		m.cancel(fmt.Errorf("%w: %w", errFull, err))
	}
	if err != nil && m.ctx.Err() == nil {
		m.result.Peers[peer].Failed = err.Error()
	}
}

// prepare empties a peer's directory and makes the peer prepare its initial state, once for all
// workloads of a group.
func (m *measuring) prepare(peer int) error {
	s, state := m.specs[peer], m.states[peer]
	if state != "" {
		if m.prepared[state] || m.failed[state] != nil {
			return m.failed[state]
		}
		s.Env.Dir = state
	}
	err := m.make(peer, s)
	if state != "" {
		m.prepared[state], m.failed[state] = err == nil, err
	}
	return err
}

func (m *measuring) make(peer int, s spec) error {
	if err := os.RemoveAll(s.Env.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Env.Dir, 0o755); err != nil {
		return err
	}
	if p := &m.w.Peers[peer]; p.Prepare == nil && p.Module == "" {
		return nil // only the program of a nested module knows whether its peer prepares anything
	}
	m.say(0, s.Peer+": prepare")
	_, err := start(m.ctx, s, stepPrepare)
	return err
}

// again gives a peer the initial state of a round, on disk and in the page cache.
func (m *measuring) again(peer int) (err error) {
	if m.ctx.Err() != nil {
		return m.ctx.Err()
	}
	s := m.specs[peer]
	switch {
	case m.w.Copies:
		err = copyDir(s.Env.Dir, m.states[peer])
	case m.w.Fresh:
		err = m.make(peer, s)
	}
	switch {
	case err != nil:
		return err
	case m.w.Cold:
		return dropCache(s.Env.Dir)
	}
	return fillCache(s.Env.Dir)
}

// fillCache reads the files in dir, so that the page cache contains them.
func fillCache(dir string) error {
	return eachFile(dir, func(f *os.File) error {
		_, err := f.WriteTo(io.Discard)
		return err
	})
}

// eachFile calls use with each regular file in dir, open for reading.
func eachFile(dir string, use func(f *os.File) error) error {
	return filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(use(f), f.Close())
	})
}

// copyDir makes a directory a copy of another, and syncs it.
func copyDir(to, from string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return eachFile(to, (*os.File).Sync)
}

// round measures one round of one peer.
func (m *measuring) round(peer, round int) error {
	if err := m.again(peer); err != nil {
		return err
	}
	p, s := &m.w.Peers[peer], m.specs[peer]
	m.say(0, fmt.Sprintf("%s: round %d of %d", p.Name, round+1, m.config.Rounds))
	s.Env.Round = round
	if m.config.Profiles != "" && round == 0 {
		s.Env.Profile = filepath.Join(m.config.Profiles, m.w.Name+"-"+p.Name)
	}
	var got Measurement
	var err error
	if p.Command != nil {
		got, err = measureCommand(m.ctx, p, s)
	} else {
		got, err = start(m.ctx, s, stepMeasure)
	}
	if err == nil && !(got.Value > 0) {
		err = errors.New(m.nothing(p.Name, got))
	}
	if err == nil {
		got.DiskBytes = diskBytes(s.Env.Dir)
		r := &m.result.Peers[peer]
		r.Rounds = append(r.Rounds, got)
	}
	if m.w.Fresh && m.states[peer] == "" || m.w.Copies {
		os.RemoveAll(s.Env.Dir) // the next round prepares it again
	}
	return err
}

// nothing returns the error for a round that measured nothing.
func (m *measuring) nothing(peer string, got Measurement) string {
	return fmt.Sprintf("%s/%s: measured %v %s", m.w.Name, peer, got.Value, m.w.Unit)
}

// diskBytes returns the disk space that the files of a directory use.
func diskBytes(dir string) (n int64) {
	filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += allocated(info)
			}
		}
		return nil
	})
	return n
}

// DiskBytes returns the allocated disk space of the peer's directory.
func (e *Env) DiskBytes() int64 { return diskBytes(e.Dir) }

// memory repeats the work, if that is needed, to measure the peak memory.
func (m *measuring) memory(peer int) error {
	p, r := &m.w.Peers[peer], &m.result.Peers[peer]
	for _, round := range r.Rounds {
		r.PeakBytes = max(r.PeakBytes, round.PeakBytes)
	}
	if p.Memory == nil {
		return nil
	}
	if err := m.again(peer); err != nil {
		return err
	}
	m.say(0, p.Name+": memory")
	got, err := start(m.ctx, m.specs[peer], stepMemory)
	r.PeakBytes = got.PeakBytes
	return err
}

// say reports the start of a step or, without a text, that n more steps are done.
func (m *measuring) say(n int, what string) {
	m.step += n
	if m.config.Progress != nil && what != "" {
		m.config.Progress(m.step, m.all, m.w.Name+": "+what)
	}
}

// Leave removes peers from workloads, and workloads without peers from the list.
func Leave(workloads []Workload, missing []Missing) []Workload {
	var out []Workload
	for _, w := range workloads {
		w.Peers = slices.DeleteFunc(slices.Clone(w.Peers), func(p Peer) bool {
			return slices.ContainsFunc(missing, func(m Missing) bool {
				return m.Peer == p.Name || m.Module != "" && m.Module == p.Module
			})
		})
		if len(w.Peers) > 0 {
			out = append(out, w)
		}
	}
	return out
}
