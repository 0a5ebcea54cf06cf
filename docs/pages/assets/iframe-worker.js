// The search looks things up in a worker. Browsers give pages opened as files none, so there a hidden frame stands in for it.
// Messages are cloned as a worker's are: the search changes the query it is sent, and the page shows the one it sent.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      (document.body || document.documentElement).append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.tell("message", data);
      inside.addEventListener("error", (error) => this.tell("error", error.message));
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href).href;
      script.onload = () => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.hand(data));
      };
      script.onerror = () => this.tell("error", `${url} cannot be loaded`);
      inside.document.head.append(script);
    }

    postMessage(data) {
      if (this.ready) this.hand(data);
      else this.waiting.push(data);
    }

    hand(data) {
      const inside = this.frame.contentWindow;
      if (inside) inside.dispatchEvent(new inside.MessageEvent("message", { data: inside.structuredClone(data) }));
    }

    tell(kind, data) {
      const event = new MessageEvent(kind, { data: structuredClone(data), cancelable: true });
      setTimeout(() => {
        this.dispatchEvent(event);
        this[`on${kind}`]?.(event);
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
