package sim

// Step is one thing that a script has a client do.
type Step struct{}

func (c *client) follow() {}
