/* A mock upstream that is never the bottleneck: one thread, epoll, a timer heap.
 *
 *   mock PORT:LATENCY_MS:GAP_US[:MODE[:CHUNKS]] ...
 *
 * MODE: ok | 429 | 500 | cut (closes half-way through) | silent (never answers). A request whose
 * body holds "stream":true is answered as server-sent events, CHUNKS of them GAP_US apart (0 = all
 * in one write); every other POST gets 938 bytes of JSON. GET /stats on any port counts requests,
 * streams begun, streams aborted by the client and clients that left before the
 * first byte (the silent mode counts them as well). Binds 127.0.0.1 only, ends on
 * SIGTERM or when its parent ends.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PORTS = 32, MAX_FD = 65536, IN_BYTES = 262144, PAGE_BYTES = 16384, JSON_BYTES = 938 };
enum mode { OK, LIMITED, FAILING, CUT, SILENT };

struct port { int fd, port, chunks; long latency_ns, gap_ns; enum mode mode; };
struct conn {
    struct port *port;
    char *in;
    size_t used;
    int fd, chunk, streaming, waiting;
    uint32_t generation;
};
struct timer { long when; int fd; uint32_t generation; };

static struct port ports[MAX_PORTS];
static int port_count, epoll_fd, timer_fd, heap_size;
static struct conn *conns[MAX_FD];
static struct timer heap[MAX_FD * 2];
static uint32_t generations;
static long requests, streams, aborted, unanswered;
static char json_page[PAGE_BYTES], event[1024], head_sse[256];
static char limited_page[512], failing_page[512];
static size_t json_size, event_size;
static const char TAIL[] =
    "data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1,"
    "\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],"
    "\"usage\":{\"prompt_tokens\":200,\"completion_tokens\":50,\"total_tokens\":250}}\n\n"
    "data: [DONE]\n\n";

static long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void arm(void) {
    struct itimerspec spec = {0};
    if (heap_size) {
        long when = heap[0].when > 0 ? heap[0].when : 1;
        spec.it_value.tv_sec = when / 1000000000L;
        spec.it_value.tv_nsec = when % 1000000000L;
    }
    timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void push(long when, struct conn *c) {
    int i = heap_size++;
    while (i && heap[(i - 1) / 2].when > when) { heap[i] = heap[(i - 1) / 2]; i = (i - 1) / 2; }
    heap[i] = (struct timer){when, c->fd, c->generation};
    c->waiting = 1;
    if (i == 0) arm();
}

static struct timer pop(void) {
    struct timer top = heap[0], last = heap[--heap_size];
    int i = 0;
    for (int child = 1; child < heap_size; child = 2 * i + 1) {
        if (child + 1 < heap_size && heap[child + 1].when < heap[child].when) child++;
        if (last.when <= heap[child].when) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

static void drop(struct conn *c) {
    if (c->streaming) aborted++;
    else if (c->waiting) unanswered++;
    conns[c->fd] = NULL;
    close(c->fd);
    free(c->in);
    free(c);
}

/* Loopback buffers hold more than one answer, so a short write means a peer that reads nothing. */
static int put(struct conn *c, const char *data, size_t size) {
    if (send(c->fd, data, size, MSG_NOSIGNAL) == (ssize_t)size) return 1;
    drop(c);
    return 0;
}

static int put_chunk(struct conn *c, const char *data, size_t size) {
    static char out[PAGE_BYTES];
    int head = snprintf(out, sizeof out, "%zx\r\n", size);
    memcpy(out + head, data, size);
    memcpy(out + head + size, "\r\n", 2);
    return put(c, out, (size_t)head + size + 2);
}

static int parse(struct conn *c);

static void finished(struct conn *c) {
    c->streaming = 0;
    while (c->used && parse(c) > 0) { }
}

static void stream_on(struct conn *c) {
    static char all[262144];
    int total = c->port->chunks;
    if (c->port->gap_ns == 0 && c->port->mode == OK) {
        size_t n = 0;
        for (int i = 0; i < total && n + event_size + 64 < sizeof all - sizeof TAIL - 64; i++) {
            n += (size_t)sprintf(all + n, "%zx\r\n", event_size);
            memcpy(all + n, event, event_size);
            n += event_size;
            memcpy(all + n, "\r\n", 2);
            n += 2;
        }
        n += (size_t)sprintf(all + n, "%zx\r\n%s\r\n0\r\n\r\n", sizeof TAIL - 1, TAIL);
        if (put(c, all, n)) finished(c);
        return;
    }
    if (c->port->mode == CUT && c->chunk >= total / 2) {
        c->streaming = 0;
        drop(c);
        return;
    }
    if (c->chunk < total) {
        c->chunk++;
        if (put_chunk(c, event, event_size)) push(now_ns() + c->port->gap_ns, c);
        return;
    }
    if (put_chunk(c, TAIL, sizeof TAIL - 1) && put(c, "0\r\n\r\n", 5)) finished(c);
}

static void answer(struct conn *c) {
    c->waiting = 0;
    if (c->streaming) {
        if (c->chunk == 0 && c->streaming == 1) {
            c->streaming = 2;
            if (!put(c, head_sse, strlen(head_sse))) return;
        }
        stream_on(c);
    } else if (c->port->mode == LIMITED) {
        if (put(c, limited_page, strlen(limited_page))) finished(c);
    } else if (c->port->mode == FAILING) {
        if (put(c, failing_page, strlen(failing_page))) finished(c);
    } else if (c->port->mode == CUT) {
        if (put(c, json_page, json_size / 2)) drop(c);
    } else if (put(c, json_page, json_size)) {
        finished(c);
    }
}

static void stats(struct conn *c) {
    char body[160], page[320];
    int size = snprintf(body, sizeof body, "{\"requests\":%ld,\"streams\":%ld,\"aborted\":%ld,\"unanswered\":%ld}",
                        requests, streams, aborted, unanswered);
    int n = snprintf(page, sizeof page,
                     "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s",
                     size, body);
    if (put(c, page, (size_t)n)) finished(c);
}

static int wants_stream(const char *body, size_t size) {
    const char *at = memmem(body, size, "\"stream\"", 8);
    if (!at) return 0;
    for (at += 8; at < body + size && strchr(" :\t\r\n", *at); at++) { }
    return at < body + size && *at == 't';
}

/* Takes one whole request from the buffer: 1 taken, 0 not complete yet, -1 the connection is gone. */
static int parse(struct conn *c) {
    if (c->waiting || c->streaming) return 0;
    char *end = memmem(c->in, c->used, "\r\n\r\n", 4);
    if (!end) return 0;
    size_t head = (size_t)(end - c->in) + 4, length = 0;
    for (char *line = c->in; line < end; line = strstr(line, "\r\n") + 2)
        if (!strncasecmp(line, "content-length:", 15)) length = strtoul(line + 15, NULL, 10);
    if (head + length > IN_BYTES) { drop(c); return -1; }
    if (c->used < head + length) return 0;
    int is_stats = !strncmp(c->in, "GET /stats", 10);
    c->chunk = 0;
    c->streaming = !is_stats && c->port->mode != LIMITED && c->port->mode != FAILING &&
                   wants_stream(c->in + head, length);
    c->used -= head + length;
    memmove(c->in, c->in + head + length, c->used);
    if (is_stats) { int fd = c->fd; stats(c); return conns[fd] == c ? 1 : -1; }
    requests++;
    streams += c->streaming;
    if (c->port->mode == SILENT) { c->waiting = 1; return 0; }
    if (c->port->latency_ns) { push(now_ns() + c->port->latency_ns, c); return 0; }
    int fd = c->fd;
    answer(c);
    return conns[fd] == c ? 1 : -1;
}

static void readable(struct conn *c) {
    ssize_t n = recv(c->fd, c->in + c->used, IN_BYTES - c->used, 0);
    if (n <= 0) {
        if (n < 0 && errno == EAGAIN) return;
        drop(c);
        return;
    }
    c->used += (size_t)n;
    c->in[c->used] = 0;
    while (parse(c) > 0) { }
}

static void accept_all(struct port *p) {
    for (;;) {
        int one = 1, fd = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK);
        if (fd < 0) return;
        if (fd >= MAX_FD) { close(fd); return; }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct conn *c = calloc(1, sizeof *c);
        *c = (struct conn){.port = p, .fd = fd, .in = malloc(IN_BYTES + 1), .generation = ++generations};
        conns[fd] = c;
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
    }
}

static void listen_on(const char *spec) {
    struct port *p = &ports[port_count++];
    char mode[16] = "ok";
    double latency_ms = 0;
    long gap_us = 0;
    p->chunks = 50;
    if (sscanf(spec, "%d:%lf:%ld:%15[^:]:%d", &p->port, &latency_ms, &gap_us, mode, &p->chunks) < 1) exit(2);
    p->latency_ns = (long)(latency_ms * 1e6);
    p->gap_ns = gap_us * 1000;
    p->mode = !strcmp(mode, "429") ? LIMITED : !strcmp(mode, "500") ? FAILING
            : !strcmp(mode, "cut") ? CUT : !strcmp(mode, "silent") ? SILENT : OK;
    int one = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)p->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(p->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(p->fd, (struct sockaddr *)&a, sizeof a) || listen(p->fd, 4096)) { perror(spec); exit(3); }
    struct epoll_event e = {.events = EPOLLIN, .data.fd = p->fd};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, p->fd, &e);
}

static void build_pages(void) {
    char body[JSON_BYTES + 1];
    int n = snprintf(body, sizeof body,
        "{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"bench\","
        "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"");
    const char *end = "\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":200,"
                      "\"completion_tokens\":50,\"total_tokens\":250}}";
    int fill = JSON_BYTES - n - (int)strlen(end);
    for (int i = 0; i < fill; i++) body[n + i] = "the quick brown fox "[i % 20];
    strcpy(body + n + fill, end);
    json_size = (size_t)snprintf(json_page, sizeof json_page,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", JSON_BYTES, body);
    event_size = (size_t)snprintf(event, sizeof event,
        "data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"bench\","
        "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"fox \"},\"finish_reason\":null}]}\n\n");
    static const char limited[] =
        "{\"error\":{\"message\":\"rate limit reached\",\"type\":\"requests\",\"code\":\"rate_limit_exceeded\"}}";
    static const char failing[] =
        "{\"error\":{\"message\":\"the server failed\",\"type\":\"server_error\",\"code\":null}}";
    sprintf(limited_page, "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n"
            "retry-after: 2\r\ncontent-length: %zu\r\n\r\n%s", sizeof limited - 1, limited);
    sprintf(failing_page, "HTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\n"
            "content-length: %zu\r\n\r\n%s", sizeof failing - 1, failing);
    strcpy(head_sse, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
}

int main(int argc, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    build_pages();
    epoll_fd = epoll_create1(0);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = timer_fd};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &e);
    for (int i = 1; i < argc && i < MAX_PORTS; i++) listen_on(argv[i]);
    for (;;) {
        struct epoll_event events[256];
        int n = epoll_wait(epoll_fd, events, 256, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd, is_port = 0;
            for (int p = 0; p < port_count; p++)
                if (ports[p].fd == fd) { accept_all(&ports[p]); is_port = 1; }
            if (fd == timer_fd) {
                uint64_t fired;
                if (read(timer_fd, &fired, sizeof fired) < 0 && errno != EAGAIN) return 1;
            } else if (!is_port && conns[fd]) {
                readable(conns[fd]);
            }
        }
        long now = now_ns();
        int popped = 0;
        while (heap_size && heap[0].when <= now) {
            struct timer t = pop();
            popped = 1;
            struct conn *c = conns[t.fd];
            if (c && c->generation == t.generation) answer(c);
        }
        if (popped) arm();
    }
}
