package pump

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// dial connects to a node as its URL says, has it load scripts, and leaves the
// socket to blocking calls.
func dial(nodeURL string, scripts []string) (*socket, error) {
	opts, err := redis.ParseURL(nodeURL)
	if err != nil {
		return nil, fmt.Errorf("pump: a node's URL cannot be read")
	}
	if opts.TLSConfig != nil || opts.Network != "tcp" {
		return nil, fmt.Errorf("pump: only nodes behind TCP without TLS can be pumped")
	}
	conn, err := net.DialTimeout("tcp", opts.Addr, hang)
	if err != nil {
		return nil, fmt.Errorf("pump: %w", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(hang))
	answers := bufio.NewReader(conn)
	var intro [][]string
	if opts.Password != "" {
		auth := []string{"AUTH"}
		if opts.Username != "" {
			auth = append(auth, opts.Username)
		}
		intro = append(intro, append(auth, opts.Password))
	}
	if opts.DB != 0 {
		intro = append(intro, []string{"SELECT", fmt.Sprint(opts.DB)})
	}
	for _, s := range scripts {
		intro = append(intro, []string{"SCRIPT", "LOAD", s})
	}
	for _, args := range intro {
		if _, err := conn.Write(command(args...)); err != nil {
			return nil, fmt.Errorf("pump: %w", err)
		}
		line, err := answers.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("pump: %w", err)
		}
		if strings.HasPrefix(line, "-") {
			return nil, fmt.Errorf("pump: %s was answered %q", args[0], strings.TrimSpace(line))
		}
		if strings.HasPrefix(line, "$") { // a digest follows
			if _, err := answers.ReadString('\n'); err != nil {
				return nil, fmt.Errorf("pump: %w", err)
			}
		}
	}
	return block(conn.(*net.TCPConn))
}
